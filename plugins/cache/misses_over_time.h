// Misses in each interval of instructions of a thread, as series for plots.
#pragma once

#include "plugins/cache/simulator.h"

#include <assay/profiler.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace cache {

class MissesOverTime {
  public:
    // `interval`: instructions.
    explicit MissesOverTime(std::uint64_t interval) : interval_(interval) {}

    // Calls `simulate(first, count)` for the records of a thread, interval by interval.
    template <typename Simulate>
    void process(const Simulator& simulator, std::uint32_t thread,
                 std::span<const trace_site_t> sites, std::span<const trace_record_t> records,
                 const Simulate& simulate) {
        if (thread != thread_) settle(simulator);
        thread_ = thread;
        std::size_t first = 0;
        for (std::size_t i = 0; i < records.size(); ++i) {
            if (sites[records[i].site].kind != TRACE_SITE_INTERVAL) continue;
            simulate(first, i + 1 - first);
            first = i + 1;
            settle(simulator);
            Thread& own = threads_[thread];
            own.intervals.push_back(std::exchange(own.now, {}));
        }
        simulate(first, records.size() - first);
    }

    // Calls `give` for each thread with a complete interval, until it returns false.
    template <typename Give>
    void each_series(const Give& give) const {
        for (const auto& [number, thread] : threads_) {
            if (thread.intervals.empty()) continue;
            assay::Series series(
                "misses over time", {"executed before", "instructions"},
                {{"I1", "misses"}, {"D1", "misses"}, {"LL", "misses"}},
                "misses in each interval of " + std::to_string(interval_) + " instructions");
            series.of_thread(number);
            std::uint64_t begin = 0;
            for (const Misses& misses : thread.intervals) {
                series.point({begin, misses[kI1], misses[kD1], misses[kLl]});
                begin += interval_;
            }
            if (!give(series)) return;
        }
    }

  private:
    enum { kI1, kD1, kLl, kLevels };
    using Misses = std::array<std::uint64_t, kLevels>;
    struct Thread {
        Misses now{};  // of the interval that has not ended
        std::vector<Misses> intervals;
    };

    // Gives the thread that ran last the misses since the last call.
    void settle(const Simulator& simulator) {
        Misses all{};
        for (std::size_t site = 0; site < simulator.site_count(); ++site) {
            const std::uint32_t target = simulator.code(site).target();
            if (target == SiteCode::kCount) continue;
            simulator.each_context(site, [&](std::uint64_t, const SiteCounts& counts) {
                all[target == SiteCode::kInstruction ? kI1 : kD1] += counts.l1_misses;
                all[kLl] += counts.ll_misses;
            });
        }
        Misses& now = threads_[thread_].now;
        for (std::size_t level = 0; level < kLevels; ++level)
            now[level] += all[level] - before_[level];
        before_ = all;
    }

    const std::uint64_t interval_;
    std::map<std::uint32_t, Thread> threads_;
    std::uint32_t thread_ = 0;
    Misses before_{};
};

}  // namespace cache
