#include "framework/driver/native/process/bursts.h"

#include <algorithm>
#include <limits>

namespace assay::native {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

// The instructions of an approach. A thread enters it late, by at most the length of a unit.
constexpr std::uint64_t kApproachInstrs = 1000;

}  // namespace

void Bursts::begin(Context& context, std::uint32_t thread) {
    if (!wanted()) return;
    places_ = driver::BurstPlaces(regions(), thread);
    context.countdown = 0;
    boundary_ = 0;
    next_interval_ = regions().sample_interval;
    counts_.skip();  // another thread may have used this slot
    trace_.set_executed(0);
    has_points_ = regions().points != 0;
    if (!has_points_) return rest(context, places_.next_rest());
    constexpr std::uint32_t kFirst = 0;
    point_ = thread == kFirst ? 0 : tables_.points().size();
    begin_next_point(context);
}

void Bursts::end(const Context& context) {
    if (!wanted() || tables_.detached()) return;
    if (part_ == Part::kBurst) send_counts();
    send_intervals(executed(context));
    send_end(context, trace::kThreadEnds);
}

std::uint64_t Bursts::executed(const Context& context) const {
    return boundary_ - static_cast<std::uint64_t>(context.countdown);
}

void Bursts::go_on(Context& context, std::uint64_t instructions) {
    boundary_ += instructions;
    context.countdown += static_cast<std::int64_t>(instructions);
}

// Captures nothing for so many instructions.
void Bursts::rest(Context& context, std::uint64_t instructions) {
    const std::uint64_t approach = std::min(instructions, kApproachInstrs);
    part_ = instructions == approach ? Part::kApproach : Part::kRest;
    go_on(context, part_ == Part::kRest ? instructions - approach : approach);
}

// Begins the next point, if any, after a warm-up as long as there is room for.
void Bursts::begin_next_point(Context& context) {
    if (point_ == tables_.points().size()) return rest(context, kNever);
    const std::uint64_t begin = tables_.points()[point_].begin;
    const std::uint64_t warm_up = begin - std::min(begin, regions().sample_warm_up);
    if (warm_up > boundary_) return rest(context, warm_up - boundary_);
    // At the program's start there is no code yet for a record.
    if (boundary_ != 0) send_end(context, trace::kRestEnds);
    part_ = Part::kWarmUp;
    go_to(context, begin);
}

void Bursts::go_to(Context& context, std::uint64_t executed) {
    go_on(context, executed - boundary_);
}

void Bursts::enters(Context& context, const Block& block, bool outside) {
    if (!wanted()) return;
    stands_still_ = outside;
    if (outside) {
        standing_ = context.countdown;
        context.countdown = kNever;
    }
    context.countdown += block.position();
}

void Bursts::has_left(Context& context) {
    if (!wanted()) return;
    if (stands_still_) context.countdown = standing_;
    stands_still_ = false;
    trace_.set_executed(executed(context));
}

void Bursts::change(Context& context) {
    if (part_ == Part::kRest) {
        part_ = Part::kApproach;
        return go_on(context, kApproachInstrs);
    }
    const bool rest_ends = part_ == Part::kApproach;
    if (rest_ends && has_points_) return begin_next_point(context);
    if (rest_ends && regions().recorded != 0) send_end(context, trace::kRestEnds);
    if (rest_ends && regions().sample_warm_up != 0) {
        part_ = Part::kWarmUp;
        return go_on(context, regions().sample_warm_up);
    }
    if (part_ != Part::kBurst) {
        if (part_ == Part::kWarmUp) send_end(context, trace::kWarmUpEnds);
        send_intervals(executed(context));
        part_ = Part::kBurst;
        return has_points_ ? go_to(context, tables_.points()[point_].end)
                           : go_on(context, regions().sample_burst);
    }
    send_end(context, trace::kBurstEnds);
    tables_.ring_doorbell();
    if (has_points_) {
        ++point_;
        return begin_next_point(context);
    }
    rest(context, places_.next_rest());
}

void Bursts::send_end(const Context& context, trace::EndOf of) {
    send_counts();
    const bool goes_on = of == trace::kWarmUpEnds || of == trace::kBurstEnds;
    if (regions().recorded != 0 && goes_on) tell(context.pc, trace::kGoesOnAt);
    tell(executed(context), of);
    trace_.end();
}

void Bursts::tell(std::uint64_t value, trace::EndOf of) {
    trace_.append(value, tables_.driver_site(0, TRACE_SITE_BURST), of);
}

void Bursts::send_counts() {
    // A recording has a record of each execution instead.
    if (has_points_ || regions().recorded != 0) return;
    const std::uint32_t site = tables_.driver_site(0, TRACE_SITE_BLOCK_COUNT);
    const bool predicts = tables_.captures(trace::kCapturePredictions);
    counts_.take([&](std::uint32_t block, std::uint64_t now, std::uint64_t) {
        trace_.append(now, site, block);
        if (predicts)
            trace_.append(trace_.mispredictions(block),
                          tables_.driver_site(0, TRACE_SITE_BLOCK_MISPREDICTIONS), block);
    });
}

// A burst belongs to the interval in which it starts.
void Bursts::send_intervals(std::uint64_t executed) {
    if (next_interval_ == 0) return;
    for (; next_interval_ < executed; next_interval_ += regions().sample_interval)
        trace_.append(regions().sample_interval, tables_.driver_site(0, TRACE_SITE_INTERVAL));
}

namespace {

// The number of remaining instructions from which each block is counted down. Reading the counters
// takes a time that depends on the number of blocks, so a larger program starts earlier.
std::int64_t nearness(std::uint32_t blocks) {
    constexpr std::int64_t kLeast = 4096, kPerBlock = 8;
    return kLeast + kPerBlock * std::int64_t{blocks};
}

}  // namespace

void Intervals::begin(Context& context) {
    corrected_ = postponed_ = 0;
    corrections_.clear();
    goal_ = static_cast<std::int64_t>(length()) + 1;
    if (wanted()) look(context);
}

void Intervals::begin_image(Context& context) {
    counts_.forget();
    begin(context);
}

void Intervals::end() {
    if (!wanted() || tables_.detached()) return;
    send_corrections();
    send_counts();
}

// The instructions since the last end.
std::int64_t Intervals::executed() {
    std::uint64_t sum = 0;
    counts_.look([&](std::uint32_t block, std::uint64_t now, std::uint64_t before) {
        sum += (now - before) * tables_.block(block).instr_count;
    });
    return static_cast<std::int64_t>(sum) + corrected_;
}

// To be called at the start of a block.
void Intervals::look(Context& context) {
    const std::int64_t remaining = goal_ - executed();
    near_end_ = remaining < nearness(tables_.next_block());
    context.interval_countdown = remaining - 1;
}

void Intervals::reach(Context& context, const Block& block) {
    if (block.version != kExact) return look(context);
    context.interval_countdown += block.instr_count;
    while (context.interval_countdown < block.instr_count) {
        const std::int64_t last = context.interval_countdown;  // index in the block
        if (is_repeated(block, last)) {
            // An interval must not end after a repeated string instruction, because exp-bbv counts
            // this instruction together with the next one.
            ++context.interval_countdown;
            ++goal_;
            ++postponed_;
            continue;
        }
        finish_interval(block.id, static_cast<std::uint32_t>(last + 1));
        context.interval_countdown += goal_;
    }
    near_end_ = context.interval_countdown < nearness(tables_.next_block());
}

bool Intervals::is_repeated(const Block& block, std::int64_t number) const {
    const auto instr = block.first_instr + static_cast<std::uint32_t>(number);
    return tables_.instr(instr).flags & TRACE_INSTR_REPEATED;
}

// The interval ends after `split` instructions of `block`, which comes next.
void Intervals::finish_interval(std::uint32_t block, std::uint32_t split) {
    send_corrections();
    send_counts();
    send_correction({block, split});
    trace_.append(length(), tables_.driver_site(0, TRACE_SITE_INTERVAL));
    if (tables_.captures(trace::kCaptureReferences)) trace_.forget_recent_lines();
    send_correction({block, -std::int64_t{split}});
    corrected_ = -std::int64_t{split};
    goal_ = static_cast<std::int64_t>(length()) - postponed_;
    postponed_ = 0;
}

void Intervals::send_counts() {
    const std::uint32_t site = tables_.driver_site(0, TRACE_SITE_BLOCK_COUNT);
    counts_.take([&](std::uint32_t block, std::uint64_t now, std::uint64_t) {
        trace_.append(now, site, block);
    });
}

void Intervals::send_correction(const Correction& correction) {
    trace_.append(static_cast<std::uint64_t>(correction.instructions),
                  tables_.driver_site(0, TRACE_SITE_BLOCK_CORRECTION), correction.block);
}

void Intervals::left_early(Context& context, const Block& block, std::uint32_t executed,
                           bool counted) {
    if (!wanted() || block.version == kPlain) return;
    const std::int64_t missing = std::int64_t{block.instr_count} - executed;
    if (block.version == kExact) context.interval_countdown += missing;
    const std::int64_t correction = counted ? -missing : executed;
    if (correction == 0) return;
    corrected_ += correction;
    corrections_.push_back({block.id, correction});
}

void Intervals::send_corrections() {
    for (const Correction& correction : corrections_) send_correction(correction);
    corrections_.clear();
}

}  // namespace assay::native
