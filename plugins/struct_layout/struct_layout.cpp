// The struct-layout profiler. It finds an order of a struct's members, or a split into two structs,
// that has fewer misses.
#include "plugins/cache/settings.h"
#include "plugins/cache/simulator.h"
#include "plugins/struct_layout/advice.h"
#include "plugins/struct_layout/replay.h"

#include <assay/profiler.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace struct_layout {
namespace {

enum Event : uint32_t { kReferences, kL1Misses, kLlMisses, kEvents };

constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"Dref", "data references", "references"},
    {"D1m", "level-1 data cache misses", "misses"},
    {"DLm", "last-level cache data misses", "misses"},
}};

constexpr std::array<vp_option_t, 6> kOptionTable{{
    {"I1", "SIZE,WAYS,LINE", nullptr,
     "Level-1 instruction cache: bytes, associativity, bytes of a line; default: the processor's.",
     VP_OPTION_TEXT, 0},
    {"D1", "SIZE,WAYS,LINE", nullptr, "Level-1 data cache.", VP_OPTION_TEXT, 0},
    {"LL", "SIZE,WAYS,LINE", nullptr, "Last-level cache, behind both.", VP_OPTION_TEXT, 0},
    {"struct", "NAME", nullptr,
     "Tries layouts of this struct, instead of the structs with the most misses.", VP_OPTION_TEXT,
     0},
    {"structs", "N", "3", "The number of structs whose layouts are tried.", VP_OPTION_UNSIGNED, 0},
    {"record", "MB", "4096", "The largest size of the file of recorded references.",
     VP_OPTION_UNSIGNED, 0},
}};

class StructLayoutProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "struct_layout";
    static constexpr const char* kDescription =
        "finds layouts of structs that have fewer cache misses, by replaying the run's references";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kOptions = kOptionTable;

    void option(std::string_view name, const std::string& value) override {
        if (name == "struct")
            wanted_.name = value;
        else if (name == "structs")
            wanted_.most = assay::number(name, value, 1, 100);
        else if (name == "record")
            most_megabytes_ = assay::number(name, value, 1, uint64_t{1} << 40);
        else
            cache::apply(settings_, name, value);
    }

    // A replay needs all references of the run.
    void check_options() override {
        if (is_sampled())
            throw std::runtime_error(
                "--plugin=struct_layout cannot be combined with --sample, since layouts are found "
                "by replaying all references; leave one of them out");
    }

    void capture(assay::Captures& wanted) override {
        shapes_ = cache::geometries(settings_);
        for (const auto& [name, text] : cache::describe(settings_)) describe(name, text);
        constexpr uint64_t kMegabyte = 1 << 20;
        recording_ = std::make_unique<Recording>(most_megabytes_ * kMegabyte);
        simulator_ = std::make_unique<cache::Simulator>(shapes_);
        const auto sets = std::min<uint64_t>(shapes_.i1.sets(), uint64_t{1} << 31);
        wanted.fetches(shapes_.i1.line, static_cast<uint32_t>(sets));
        wanted.references();
        wanted.block_counts();
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        const auto sites = trace.sites();
        simulator_->learn(sites.data(), sites.size());
        const auto records = trace.records();
        const auto contexts = trace.contexts();
        references_.clear();
        contexts_.clear();
        for (std::size_t i = 0; i < records.size(); ++i) {
            const trace_record_t& record = records[i];
            const uint8_t kind = sites[record.site].kind;
            const bool data =
                kind == TRACE_SITE_READ || kind == TRACE_SITE_WRITE || kind == TRACE_SITE_MODIFY;
            if (data) ++counts_[record.site];
            if (!data && kind != TRACE_SITE_FETCH) continue;
            references_.push_back(record);
            if (!contexts.empty()) contexts_.push_back(contexts[i]);
        }
        if (trace.has_context())
            simulator_->process(trace.thread(), references_, contexts_);
        else
            simulator_->process(trace.thread(), references_.data(), references_.size());
        recording_->add(trace.thread(), references_);
        if (trace.thread_end()) simulator_->end(trace.thread());
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        const auto sites = trace.sites();
        const auto instrs = trace.instrs();
        simulator_->learn(sites.data(), sites.size());
        for (uint32_t site = 0; site < sites.size(); ++site) {
            if (counts_[site] == 0) continue;
            const uint64_t pc = instrs[sites[site].instr].pc;
            // Without contexts, because each execution has the same number of references, except in
            // repeated string instructions.
            samples.count(pc, kReferences, counts_[site]);
            simulator_->each_context(site, [&](uint64_t context, const cache::SiteCounts& counts) {
                samples.count(pc, kL1Misses, counts.l1_misses, context);
                samples.count(pc, kLlMisses, counts.ll_misses, context);
            });
        }
        simulator_.reset();
        recording_->end();
        if (recording_->left_out() != 0)
            warn("the last " + std::to_string(recording_->left_out()) + " of " +
                 std::to_string(recording_->left_out() + recording_->references()) +
                 " references are not replayed; allow more megabytes with --record");
        summary_ = advise(trace, *recording_, shapes_, wanted_);
    }

    std::string summary(std::span<const uint64_t>) override { return summary_; }

  private:
    cache::Settings settings_;
    cache::Geometries shapes_;
    Wanted wanted_;
    uint64_t most_megabytes_ = 4096;
    std::unique_ptr<Recording> recording_;
    std::unique_ptr<cache::Simulator> simulator_;
    assay::Indexed<uint64_t> counts_;  // references, by site
    std::vector<trace_record_t> references_;
    std::vector<uint32_t> contexts_;  // of references_
    std::string summary_;
};

}  // namespace
}  // namespace struct_layout

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<struct_layout::StructLayoutProfiler>();
