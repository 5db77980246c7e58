// Sampling (--sample): each thread captures bursts of its instructions, one in each period, and the
// collector scales the counts. In every run, the bursts of a thread start at the same instructions.
// Their places in the periods are random, so that a rhythm of the program cannot match the period.
// Instead of bursts there may be simulation points (record --simpoints): listed intervals of the
// first thread.
//
// A thread executes the collecting version in its bursts, and otherwise one that captures nothing.
// Context::countdown is the number of instructions to the next start or end of a burst:
//
//   - The collecting version counts each block down, like for the boundaries of Regions.
//   - The plain version executes nearly all instructions, so it counts only at the exit of a unit,
//     however many blocks were executed. An exit subtracts the instructions from the unit's start
//     to the exit (Exit::uncounted). An entry at another block than the first adds the instructions
//     before that block (Block::position). A jump from one unit to another does both at once, in
//     separate code if the target was unknown at translation. A jump back within a unit counts
//     right there.
//   - The approach, the last instructions before a burst or its warm-up, has a version that
//     captures nothing either, but counts each block down. Bursts therefore start at the same block
//     in every run, and in a replay.
//
// A burst may have a warm-up right before it, which is captured in the same way; the collector
// tells them apart. At the end of each, the thread sends its block counts and completes its buffer,
// so that no buffer has records of two parts.
//
// A recording has a record of each execution instead of counts. It tells where a burst or its
// warm-up starts, and where the thread continues after its last block. Each simulation point has a
// warm-up. This may be empty, for example if the point follows the previous one directly.
//
// This file also has intervals: parts of a fixed number of instructions, for
// trace_capture_intervals.
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/trace/thread_trace.h"
#include "framework/driver/shared/burst_places.h"

#include <cstdint>
#include <vector>

namespace assay::native {

// The bursts of one thread. Callers hold the driver's lock.
class Bursts {
  public:
    Bursts(TraceTables& tables, ThreadTrace& trace)
        : tables_(tables), trace_(trace), counts_(trace) {}

    bool wanted() const { return trace::has_bursts(regions()); }
    // True in a burst and in the warm-up before it.
    bool in_burst() const { return part_ == Part::kWarmUp || part_ == Part::kBurst; }
    // The version that the thread has to execute, inside of Regions.
    Version version() const {
        if (part_ == Part::kApproach) return kApproach;
        return part_ == Part::kRest ? kPlain : kCollecting;
    }

    // The thread starts, or continues in a new image, whose counters are zero.
    void begin(Context& context, std::uint32_t thread);
    void end(const Context& context);

    // To be called before and after translated code runs, from `block` on. `outside`: the thread is
    // outside of all Regions, where the countdown stops.
    void enters(Context& context, const Block& block, bool outside);
    void has_left(Context& context);
    // True if the next part has to begin.
    bool is_due(const Context& context) const { return !in_burst() && context.countdown < 0; }
    // Begins the next part of the period.
    void change(Context& context);

  private:
    enum class Part : std::uint8_t { kRest, kApproach, kWarmUp, kBurst };

    const trace::Regions& regions() const { return tables_.spec().regions; }
    std::uint64_t executed(const Context& context) const;
    void go_on(Context& context, std::uint64_t instructions);
    void rest(Context& context, std::uint64_t instructions);
    void begin_next_point(Context& context);
    void go_to(Context& context, std::uint64_t executed);
    void send_counts();
    void send_end(const Context& context, trace::EndOf of);
    void tell(std::uint64_t value, trace::EndOf of);
    void send_intervals(std::uint64_t executed);

    TraceTables& tables_;
    ThreadTrace& trace_;
    BlockCounts counts_;  // that were sent
    driver::BurstPlaces places_;
    std::size_t point_ = 0;            // index of the next or current point
    bool has_points_ = false;          // true: points; false: periods
    std::uint64_t boundary_ = 0;       // executed instructions when the countdown is 0
    std::uint64_t next_interval_ = 0;  // its start; 0: no intervals
    std::int64_t standing_ = 0;        // the countdown while it is stopped
    bool stands_still_ = false;
    Part part_ = Part::kRest;
};

// Intervals of instructions: after every N instructions, a thread tells the collector how often it
// has entered each block (trace_capture_intervals).
//
// An interval ends after exactly N instructions, also in the middle of a block. Counting down
// before each block would be slow, so there are two ways, each with its own translations (Version):
//
//   - Far from the end (kCollecting) the code counts only where a jump enters a unit, and at heads
//     of loops in it. It counts the instructions up to the next such place or the unit's end, and
//     perhaps some more. The count is never too low, so the countdown never ends too late. When it
//     ends, the driver computes from the block counters how many instructions really remain, and
//     starts the countdown again.
//   - Near the end (kExact) the code counts the instructions of each block, before the block. If
//     the countdown ends there, the interval ends in this block.
//
// The remaining instructions shrink geometrically each time. An interval of a hundred million
// instructions needs about a dozen rounds.
//
// At the end the thread sends its counts, in which the last block counts as a whole. A correction
// gives the instructions after the end to the next interval.

// The intervals of one thread. Callers hold the driver's lock.
class Intervals {
  public:
    Intervals(TraceTables& tables, ThreadTrace& trace)
        : tables_(tables), trace_(trace), counts_(trace) {}

    bool wanted() const { return length() != 0; }
    // True if translated code must count down before each block.
    bool near_end() const { return near_end_; }

    void begin(Context& context);
    // Like begin(), in a new image, whose counters are zero.
    void begin_image(Context& context);
    // The thread ends: sends the counts since the end of the last interval.
    void end();
    // The countdown has ended before `block`, whose instructions are already subtracted.
    void reach(Context& context, const Block& block);
    // The thread has left `block` after `executed` of its instructions. `counted`: the block's
    // counter already includes this execution.
    void left_early(Context& context, const Block& block, std::uint32_t executed, bool counted);
    // Sends the corrections that left_early() has noted. Must not be called in a signal handler.
    void send_corrections();

  private:
    struct Correction {
        std::uint32_t block;
        std::int64_t instructions;
    };

    std::uint64_t length() const { return tables_.spec().interval; }
    std::int64_t executed();
    void look(Context& context);
    void finish_interval(std::uint32_t block, std::uint32_t split);
    void send_counts();
    void send_correction(const Correction& correction);
    bool is_repeated(const Block& block, std::int64_t number) const;

    TraceTables& tables_;
    ThreadTrace& trace_;
    BlockCounts counts_;  // that were sent
    std::vector<Correction> corrections_;
    std::int64_t corrected_ = 0;  // sum of the corrections since the last end
    std::int64_t goal_ = 0;       // instructions from the last end to the next
    std::int64_t postponed_ = 0;  // instructions by which the next end is late
    bool near_end_ = false;
};

}  // namespace assay::native
