// What a replayed thread does where a burst, a simulation point, or a warm-up begins and ends.
#include "framework/driver/replay/replayed_thread.h"

#include "framework/support/error.h"

#include <fmt/core.h>

namespace assay::replay {

// Where the last branch of a point leads is not known: the thread goes on somewhere else.
void ReplayedThread::pass_boundary(const trace_record_t& record, const PlannedSite& site) {
    if (record.aux == trace::kGoesOnAt) {
        reach_end();
        return go_on_at(record.value);
    }
    if (samples_) return pass_end_of_burst(record, site);
    if (site.site == kNoSite || record.aux == trace::kThreadEnds) return;
    reach_end();
    if (record.aux == trace::kRestEnds) {
        branch_ = nullptr;
        return;
    }
    part_end_ = {record.value, site.site, record.aux};
    if (record.aux == trace::kBurstEnds) end_part();
}

// --- Bursts.

void ReplayedThread::pass_end_of_burst(const trace_record_t& record, const PlannedSite& site) {
    reach_end();
    check_executed(record.value);
    branch_ = nullptr;
    if (record.aux == trace::kRestEnds) {
        in_burst_ = spec_.regions.sample_warm_up == 0;
        if (in_burst_) send_intervals(record.value);
        return;
    }
    const bool thread_ends = record.aux == trace::kThreadEnds;
    if (thread_ends && in_burst_) send_counts();
    if (thread_ends) send_intervals(record.value);
    send_counts();
    slot_.append(record.value, site.site, record.aux);
    slot_.complete();
    in_burst_ = record.aux == trace::kWarmUpEnds;
    if (in_burst_) send_intervals(record.value);
}

// There is a burst in each period. Numbers that are none of such a thread would be made into any
// number of intervals.
void ReplayedThread::check_executed(std::uint64_t instructions) {
    constexpr std::uint64_t kLate = 1 << 20;  // more than a burst can begin or end
    const std::uint64_t most = executed_ + 2 * spec_.regions.sample_period + kLate;
    if (instructions < executed_ || instructions > most)
        throw Error(fmt::format(
            "{} is damaged: a thread of process {} has executed {} instructions before a burst "
            "and {} behind it",
            image_.file().path(), image_.pid(), executed_, instructions));
    executed_ = instructions;
}

// A burst belongs to the interval that it begins in.
void ReplayedThread::send_intervals(std::uint64_t executed) {
    const std::uint64_t length = spec_.regions.sample_interval;
    for (; length != 0 && next_interval_ < executed; next_interval_ += length)
        slot_.append(length, plan_.general_site(TRACE_SITE_INTERVAL));
}

// --- Simulation points.

void ReplayedThread::end_part() {
    counts_ = part_end_->aux == trace::kWarmUpEnds;
    slot_.append(part_end_->value, part_end_->site, part_end_->aux);
    part_end_.reset();
    slot_.complete();
}

}  // namespace assay::replay
