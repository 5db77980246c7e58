// The prefetch profiler: which instructions miss a cache at a constant stride, and how many of the
// misses a prefetch some executions ahead would avoid.
#include "plugins/prefetch/misses.h"

#include <assay/profiler.hpp>
#include <assay/text.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace prefetch {
namespace {

enum Event : uint32_t { kMisses, kStrided, kFirstSaved, kEventCount = kFirstSaved + kDistances };

constexpr std::array<vp_event_t, kEventCount> kEventTable{{
    {"PMiss", "references that miss the cache", "misses"},
    {"PStr", "misses at the stride at which the instruction misses most", "misses"},
    {"Pf1", "misses that a prefetch one execution ahead avoids", "misses"},
    {"Pf2", "misses that a prefetch 2 executions ahead avoids", "misses"},
    {"Pf4", "misses that a prefetch 4 executions ahead avoids", "misses"},
    {"Pf8", "misses that a prefetch 8 executions ahead avoids", "misses"},
    {"Pf16", "misses that a prefetch 16 executions ahead avoids", "misses"},
    {"Pf32", "misses that a prefetch 32 executions ahead avoids", "misses"},
    {"Pf64", "misses that a prefetch 64 executions ahead avoids", "misses"},
}};

constexpr std::array<vp_derived_t, 2> kDerivedTable{{
    {"at a constant stride", "PStr / PMiss", "%"},
    {"avoided 8 ahead", "Pf8 / PMiss", "%"},
}};

constexpr std::array<vp_option_t, 1> kOptionTable{{
    {"D1", "SIZE,WAYS,LINE", "32768,8,64",
     "The cache of each thread, in bytes; least recently used.", VP_OPTION_TEXT, 0},
}};

class PrefetchProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "prefetch";
    static constexpr const char* kDescription =
        "tells which instructions miss at a constant stride, and what prefetches would avoid";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kDerived = kDerivedTable;
    static constexpr const auto& kOptions = kOptionTable;
    static constexpr bool kPrintsValues = true;

    void option(std::string_view name, const std::string& value) override {
        std::string why;
        const std::optional<cache::Geometry> geometry = cache::parse_geometry(value, why);
        if (!geometry) throw assay::BadOption(name, value, why);
        geometry_ = *geometry;
    }

    void capture(assay::Captures& wanted) override {
        misses_ = std::make_unique<Misses>(geometry_);
        describe("D1 cache", cache::describe(geometry_));
        wanted.references();
        if (!is_sampled()) return;
        constexpr uint64_t kWarmUp = 40960;  // as for cache
        wanted.warm_up(kWarmUp);
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        misses_->learn(trace.sites(), trace.instrs());
        misses_->process(trace.thread(), trace.records(), !trace.is_warm_up());
        if (trace.thread_end()) misses_->end(trace.thread());
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        // The operands of an instruction add up.
        for (const Operand& operand : misses_->operands()) {
            const Stride best = operand.best();
            samples.count(operand.pc(), kMisses, operand.misses(), VP_NO_CONTEXT);
            samples.count(operand.pc(), kStrided, best.misses, VP_NO_CONTEXT);
            for (uint32_t i = 0; i < kDistances; ++i)
                samples.count(operand.pc(), kFirstSaved + i, best.saved[i], VP_NO_CONTEXT);
            samples.value(operand.pc(), static_cast<uint64_t>(best.stride), best.misses);
        }
        summary_ = summarise(trace);
    }

    std::string summary(std::span<const uint64_t>) override { return summary_; }

    std::optional<std::string> preface(const trace_instr_t& instr, uint32_t) override {
        if (!(instr.flags & (TRACE_INSTR_LOAD | TRACE_INSTR_STORE))) return std::nullopt;
        return "strides of misses";
    }
    std::string format(const trace_instr_t&, uint64_t value) override {
        return std::to_string(static_cast<int64_t>(value));
    }

  private:
    // The instructions for which a prefetch avoids the most misses.
    std::string summarise(const assay::Trace& trace) const {
        constexpr std::size_t kShown = 8;
        constexpr unsigned kAhead = 3;  // 8 executions
        struct Row {
            const Operand* operand;
            Stride best;
        };
        std::vector<Row> rows;
        for (const Operand& operand : misses_->operands())
            if (const Stride best = operand.best(); best.saved[0] != 0)
                rows.push_back({&operand, best});
        if (rows.empty()) return "no instruction misses at a constant stride\n";
        const std::size_t shown = std::min(rows.size(), kShown);
        std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown),
                          rows.end(), [](const Row& a, const Row& b) {
                              return std::pair(a.best.saved[0], b.operand->pc()) >
                                     std::pair(b.best.saved[0], a.operand->pc());
                          });
        rows.resize(shown);
        std::vector<uint64_t> pcs(rows.size());
        std::transform(rows.begin(), rows.end(), pcs.begin(),
                       [](const Row& row) { return row.operand->pc(); });
        trace.prepare_frames(pcs);
        using assay::right;
        std::string out =
            "      misses  strided      stride   avoided by a prefetch, executions "
            "ahead\n" +
            right("1", 38) + right("8", 6) + right("64", 6) + "   where\n";
        for (const auto& [operand, best] : rows) {
            const auto share = [all = operand->misses()](uint64_t part) {
                return assay::percent(part, all, 0);
            };
            const trace_frame_t& frame = trace.frames(operand->pc()).front();
            const std::string file = frame.file;
            out += right(assay::with_commas(assay::scaled(operand->misses(), trace.scale())), 12) +
                   right(share(best.misses), 9) + right(std::to_string(best.stride), 12) +
                   right(share(best.saved[0]), 5) + right(share(best.saved[kAhead]), 6) +
                   right(share(best.saved[kDistances - 1]), 6) + "   " +
                   file.substr(file.rfind('/') + 1) + ":" + std::to_string(frame.line) + " (" +
                   frame.function + ")\n";
        }
        return out;
    }

    cache::Geometry geometry_{32768, 8, 64};
    std::unique_ptr<Misses> misses_;
    std::string summary_;
};

}  // namespace
}  // namespace prefetch

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<prefetch::PrefetchProfiler>();
