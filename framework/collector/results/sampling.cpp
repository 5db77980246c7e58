#include "framework/collector/results/sampling.h"

#include "framework/collector/trace/segment.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

namespace assay::collector {
namespace {

// When there are this many groups of bursts, each pair of groups is merged.
constexpr std::size_t kMostGroups = 128;
constexpr std::size_t kFewestGroups = 8;

// The two-sided 95 % point of Student's distribution (Abramowitz and Stegun, 26.7.5).
double student(double freedom) {
    constexpr double kNormal = 1.959964;
    constexpr double kFirst = (kNormal * kNormal * kNormal + kNormal) / 4;
    constexpr double kSecond = (5 * kNormal * kNormal * kNormal * kNormal * kNormal +
                                16 * kNormal * kNormal * kNormal + 3 * kNormal) /
                               96;
    return kNormal + kFirst / freedom + kSecond / (freedom * freedom);
}

}  // namespace

bool Sampling::take(std::uint32_t thread, std::uint32_t slot,
                    std::span<const trace_record_t> records, const CodeTables& code) {
    bool ended = false;
    for (const trace_record_t& record : records) {
        const unsigned kind = code.sites[record.site].kind;
        if (kind == TRACE_SITE_BLOCK_COUNT) count(slot, record.aux, record.value, code);
        if (kind == TRACE_SITE_BLOCK_MISPREDICTIONS)
            count_mispredictions(slot, record.aux, record.value, code);
        if (kind != TRACE_SITE_BURST) continue;
        threads_[thread] = record.value;
        if (record.aux == trace::kWarmUpEnds)
            in_burst_.insert(slot);
        else
            in_burst_.erase(slot);
        if (record.aux == trace::kBurstEnds && !is_point_) ended |= end_burst();
    }
    return ended;
}

void Sampling::count(std::uint32_t slot, std::uint32_t block, std::uint64_t counter,
                     const CodeTables& code) {
    if (block >= code.blocks.size()) return;  // true only if the program has overwritten it
    std::vector<std::uint64_t>& counters = counters_[slot];
    if (counters.size() <= block) counters.resize(code.blocks.size());
    const std::uint64_t times = counter - counters[block];
    if (times == 0) return;
    counters[block] = counter;
    const bool warm_up = is_warm_up(slot);
    std::vector<std::uint64_t>& executions = warm_up ? warming_ : executions_;
    executions.resize(code.instrs.size());
    const trace_block_t& row = code.blocks[block];
    if (!warm_up) in_bursts_ += times * row.instr_count;
    for (std::uint32_t i = 0; i < row.instr_count; ++i) executions[row.first_instr + i] += times;
}

void Sampling::count_mispredictions(std::uint32_t slot, std::uint32_t block, std::uint64_t counter,
                                    const CodeTables& code) {
    if (block >= code.blocks.size()) return;  // true only if the program has overwritten it
    std::vector<std::uint64_t>& counters = mispredicted_[slot];
    if (counters.size() <= block) counters.resize(code.blocks.size());
    std::vector<std::uint64_t>& sums = is_warm_up(slot) ? warming_mispredictions_ : mispredictions_;
    if (sums.size() <= block) sums.resize(code.blocks.size());
    sums[block] += counter - counters[block];
    counters[block] = counter;
}

void Sampling::take_rest(std::uint32_t slot, std::span<const std::uint64_t> counters,
                         std::span<const std::uint64_t> mispredictions, const CodeTables& code) {
    if (is_point_) return;
    for (std::uint32_t block = 0; block < counters.size(); ++block)
        count(slot, block, counters[block], code);
    for (std::uint32_t block = 0; block < mispredictions.size(); ++block)
        count_mispredictions(slot, block, mispredictions[block], code);
}

// The executions of a block that was left early in a warm-up have already been taken off.
void Sampling::take_off_warm_up(std::span<std::uint64_t> executions,
                                std::span<std::uint64_t> mispredictions) {
    warming_mispredictions_.resize(mispredictions.size());
    for (std::size_t i = 0; i < mispredictions.size(); ++i)
        mispredictions[i] -= std::min(mispredictions[i], warming_mispredictions_[i]);
    warming_.resize(executions.size());
    captured_ = 0;
    for (std::size_t i = 0; i < executions.size(); ++i) {
        executions[i] -= std::min(executions[i], warming_[i]);
        captured_ += executions[i];
    }
}

bool Sampling::end_burst() {
    if (++bursts_ != next_group_) return false;
    next_group_ += bursts_of_group_;
    return true;
}

void Sampling::totals(std::vector<std::uint64_t> by_event) {
    groups_.push_back({in_bursts_, std::move(by_event)});
    if (groups_.size() != kMostGroups) return;
    for (std::size_t i = 0; i < kMostGroups / 2; ++i) groups_[i] = std::move(groups_[2 * i + 1]);
    groups_.resize(kMostGroups / 2);
    next_group_ += bursts_of_group_;
    bursts_of_group_ *= 2;
}

void Sampling::executed(std::uint32_t thread, std::uint64_t instructions) {
    std::uint64_t& known = threads_[thread];
    known = std::max(known, instructions);
}

std::uint64_t Sampling::executed_by(std::uint32_t thread) const {
    const auto known = threads_.find(thread);
    return known == threads_.end() ? 0 : known->second;
}

std::uint64_t Sampling::executed() const {
    std::uint64_t sum = 0;
    for (const auto& [thread, instructions] : threads_) sum += instructions;
    return std::max(sum, captured_);  // `sum` is less only if the program was killed in a burst
}

double Sampling::factor() const {
    if (!wanted() || captured_ == 0) return 1;
    return static_cast<double>(target()) / static_cast<double>(captured_);
}

// Returns the number of instructions that the captured ones stand for.
std::uint64_t Sampling::target() const {
    if (!is_point_) return executed();
    return stands_for_ == 0 ? captured_ : stands_for_;
}

// All counts of a row are scaled with the same `left`. The first count determines the next `left`.
void Sampling::scale_row(std::span<std::uint64_t> counts, const std::vector<bool>& unscaled,
                         std::uint64_t& left) const {
    std::optional<std::uint64_t> next;
    for (std::size_t column = 0; column < counts.size(); ++column) {
        if (counts[column] == 0 || unscaled[column]) continue;
        const Scaled result = scaled(counts[column], left);
        counts[column] = result.count;
        if (!next) next = result.left;
    }
    left = next.value_or(left);
}

std::uint64_t Sampling::scaled_part(std::uint64_t count) const {
    return scaled(count, 0).count;
}

// Returns (count * target() + added) / captured_, and the remainder.
Sampling::Scaled Sampling::scaled(std::uint64_t count, std::uint64_t added) const {
    if (!wanted() || captured_ == 0) return {count, 0};
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{count} * target() + added;
    return {static_cast<std::uint64_t>(std::min<Wide>(product / captured_, UINT64_MAX)),
            static_cast<std::uint64_t>(product % captured_)};
}

bool Sampling::tells_errors() const {
    return groups_.size() >= kFewestGroups;
}

std::optional<double> Sampling::error(std::size_t event) const {
    if (!tells_errors() || groups_.back().totals[event] == 0) return {};
    const auto groups = static_cast<double>(groups_.size());
    const auto instructions = static_cast<double>(groups_.back().instructions);
    const double ratio = static_cast<double>(groups_.back().totals[event]) / instructions;
    double squares = 0, deviation_before = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        const Snapshot& group = groups_[i];
        const std::uint64_t counted = i == 0 ? 0 : groups_[i - 1].totals[event];
        const std::uint64_t executed = i == 0 ? 0 : groups_[i - 1].instructions;
        // A total that is an estimate, or a current maximum, can become less.
        const double more = static_cast<double>(group.totals[event]) - static_cast<double>(counted);
        const double deviation = more - ratio * static_cast<double>(group.instructions - executed);
        if (i != 0) squares += (deviation - deviation_before) * (deviation - deviation_before);
        deviation_before = deviation;
    }
    const double left = 1 - 1 / factor();  // correction for a finite population
    const double variance = left * squares / 2 / (groups - 1) * groups;
    return student(groups - 1) * std::sqrt(variance) / (ratio * instructions);
}

std::string Sampling::description() const {
    if (is_point_) return point_;
    return fmt::format(
        "{} of every {} instructions of each thread, in {} bursts{}; counts are estimates, "
        "multiplied by {:.6g}",
        with_thousands(burst_), with_thousands(period_), with_thousands(bursts_),
        warm_up_ == 0 ? "" : fmt::format(", after {} to warm up", with_thousands(warm_up_)),
        factor());
}

}  // namespace assay::collector
