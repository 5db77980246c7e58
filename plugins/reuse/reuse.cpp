// The reuse profiler: the number of different lines between two references to the same line, and
// the misses of caches of every size that follow from it.
#include "plugins/common/sites.h"
#include "plugins/reuse/settings.h"
#include "plugins/reuse/stack.h"

#include <assay/profiler.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace reuse {
namespace {

struct Column {
    const char *name, *description, *ratio, *formula;
};
#define SIZE(name)                                                                            \
    {                                                                                         \
        "M" name, "misses of a fully associative LRU cache of " name "B", "miss ratio " name, \
            "M" name " / Refs"                                                                \
    }
constexpr std::array<Column, kSizes> kColumns{
    {SIZE("1K"),   SIZE("2K"),   SIZE("4K"),   SIZE("8K"),   SIZE("16K"), SIZE("32K"),
     SIZE("64K"),  SIZE("128K"), SIZE("256K"), SIZE("512K"), SIZE("1M"),  SIZE("2M"),
     SIZE("4M"),   SIZE("8M"),   SIZE("16M"),  SIZE("32M"),  SIZE("64M"), SIZE("128M"),
     SIZE("256M"), SIZE("512M"), SIZE("1G")}};
#undef SIZE

constexpr std::array<vp_event_t, kEvents> kEventTable = [] {
    std::array<vp_event_t, kEvents> table{};
    table[kReferences] = {"Refs", "data references", "references"};
    for (unsigned i = 0; i < kSizes; ++i)
        table[kMisses + i] = {kColumns[i].name, kColumns[i].description, "misses"};
    table[kNew] = {"New", "data references to a line that the thread had not touched before",
                   "references"};
    return table;
}();

constexpr std::array<vp_derived_t, kSizes> kDerivedTable = [] {
    std::array<vp_derived_t, kSizes> table{};
    for (unsigned i = 0; i < kSizes; ++i) table[i] = {kColumns[i].ratio, kColumns[i].formula, "%"};
    return table;
}();

class ReuseProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "reuse";
    static constexpr const char* kDescription =
        "measures reuse distances, and with them the misses of LRU caches of all sizes";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kDerived = kDerivedTable;
    static constexpr const auto& kOptions = kOptionTable;

    void option(std::string_view name, const std::string& value) override {
        apply(settings_, name, value);
    }
    void check_options() override { check(settings_); }

    void capture(assay::Captures& wanted) override {
        std::vector<uint32_t> limits;
        uint32_t event = kMisses;
        const auto leave_out_up_to = [&](uint32_t end) {
            for (; event < end; ++event) leave_out(event);
        };
        if (is_sampled()) {
            leave_out_up_to(reuse::kEvents);
            warn("no reuse distances with --sample: they reach from one burst to another");
        }
        for (const unsigned shift : settings_.shifts) {
            limits.push_back(static_cast<uint32_t>((uint64_t{1} << shift) / settings_.line));
            if (is_sampled()) continue;
            leave_out_up_to(misses_at(shift));
            ++event;
        }
        leave_out_up_to(kNew);
        stacks_ = std::make_unique<ThreadStacks>(settings_.line, std::move(limits));
        describe("lines", std::to_string(settings_.line) + " B");
        wanted.block_counts();
        // With one set, the filter omits only references to the most recent line of all.
        wanted.references(settings_.line, 1);
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        stacks_->learn(trace.sites());
        try {
            stacks_->process(trace.thread(), trace.records(),
                             trace.has_context() ? trace.contexts() : std::span<const uint32_t>{});
        } catch (const std::bad_alloc&) {
            throw std::runtime_error("no memory for the lines of thread " +
                                     std::to_string(trace.thread() + 1) +
                                     "; use a larger --line-size");
        }
        if (trace.thread_end()) stacks_->end(trace.thread());
    }

    void finish(assay::Trace&, assay::Samples&) override {
        if (is_sampled()) return;
        series(reuse::series(stacks_->histograms(), settings_.line));
        if (settings_.miss_curve.empty()) return;
        std::ofstream file(settings_.miss_curve);
        file << csv(stacks_->histograms(), settings_.line);
        file.close();
        if (!file)
            warn("--miss-curve: " + settings_.miss_curve +
                 " cannot be written: " + std::strerror(errno));
    }

    bool finish_more(assay::Trace& trace, assay::Samples& samples) override {
        constexpr std::size_t kPortion = 8192;
        const auto sites = trace.sites();
        stacks_->learn(sites);
        for (; next_site_ < sites.size() && samples.size() < kPortion; ++next_site_)
            count_site(trace, sites, next_site_, samples);
        return next_site_ < sites.size();
    }

    std::string summary(std::span<const uint64_t> totals) override {
        if (is_sampled()) return {};
        return summarise(stacks_->histograms(), totals[kReferences], stacks_->lines(),
                         settings_.line);
    }

  private:
    void count_site(const assay::Trace& trace, std::span<const trace_site_t> sites, uint32_t at,
                    assay::Samples& samples) const {
        const trace_site_t& site = sites[at];
        if (!sites::is_data(site)) return;
        const trace_instr_t& instr = trace.instrs()[site.instr];
        if (!(instr.flags & TRACE_INSTR_VARIABLE))
            samples.count(instr.pc, kReferences, trace.count(site.instr));
        else if (const std::size_t counts = sites::count_behind(sites, at); counts < sites.size())
            stacks_->each_context(static_cast<uint32_t>(counts),
                                  [&](uint64_t context, std::span<const uint64_t> cells) {
                                      samples.count(instr.pc, kReferences, cells[0], context);
                                  });
        stacks_->each_context(at, [&](uint64_t context, std::span<const uint64_t> cells) {
            uint64_t misses = cells.back();
            samples.count(instr.pc, kNew, misses, context);
            for (std::size_t i = settings_.shifts.size(); i-- > 0;) {
                misses += cells[i];
                samples.count(instr.pc, misses_at(settings_.shifts[i]), misses, context);
            }
        });
    }

    Settings settings_;
    std::unique_ptr<ThreadStacks> stacks_;
    uint32_t next_site_ = 0;  // position of finish_more()
};

}  // namespace
}  // namespace reuse

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<reuse::ReuseProfiler>();
