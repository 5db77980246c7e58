// Sampling (--sample): of each thread's instructions, bursts are captured, one in each period, and
// the collector scales the counts. The bursts of a thread lie at the same instructions in every
// run, anywhere in their periods, lest a rhythm of the program hide in that of the periods. Or they
// are simulation points (record --simpoints): of the first thread, where a list says.
//
// A thread executes the collecting version in its bursts, else the plain one. Instructions are
// counted down, in Context::countdown, to the next begin or end of a burst:
//
//   - in the collecting version block by block, as for the boundaries of Regions.
//   - in the plain one, which nearly all is executed in, where a unit is left, by the number of
//     instructions from its beginning: once however many of its blocks were executed. While it is
//     executed, the countdown is what it would be if the unit had been entered at its first block,
//     and nothing counted since. Who enters another block adds the instructions before that
//     (Block::position), and who leaves subtracts those before the place where he does
//     (Exit::uncounted). Jumps from one unit to another do both at once, in code of their own if it
//     is not known when the unit is translated; jumps back within a unit right where they are.
//
// A burst may have a warm-up right before it, which is captured in the same way: the collector
// tells them apart. At the end of each, the thread sends what it has counted of each block, and
// completes its buffer, so that no buffer has records of two of them. Recordings have a record of
// each execution instead of counts, and say where a burst or its warm-up begins, and where the
// thread goes on behind its last block. A simulation point has a warm-up in any case, be it empty:
// of the first, of one that follows the one before at once.
//
// Also intervals: of so many instructions each, for trace_capture_intervals.
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/trace/thread_trace.h"

#include <cstdint>
#include <vector>

namespace assay::native {

// Of one thread. For whoever holds the driver's lock.
class Bursts {
  public:
    Bursts(TraceTables& tables, ThreadTrace& trace)
        : tables_(tables), trace_(trace), counts_(trace) {}

    bool wanted() const { return trace::has_bursts(regions()); }
    // In a burst or in the warm-up before it.
    bool in_burst() const { return part_ != Part::kRest; }

    // The thread begins, or goes on in an image of its own, whose counters are zero.
    void begin(Context& context, std::uint32_t thread);
    // The thread ends.
    void end(const Context& context);

    // Around the execution of translated code from `block` on. While it is outside of all Regions,
    // the bursts' time stands still.
    void enters(Context& context, const Block& block, bool outside);
    void has_left(Context& context);
    // Whether one is to begin.
    bool is_due(const Context& context) const { return !in_burst() && context.countdown < 0; }
    // The next part of the period begins.
    void change(Context& context);

  private:
    enum class Part : std::uint8_t { kRest, kWarmUp, kBurst };

    const trace::Regions& regions() const { return tables_.spec().regions; }
    std::uint64_t executed(const Context& context) const;
    void go_on(Context& context, std::uint64_t instructions);
    void begin_period(Context& context);
    void begin_next_point(Context& context);
    void go_to(Context& context, std::uint64_t executed);
    void send_counts();
    void send_end(const Context& context, trace::EndOf of);
    void tell(std::uint64_t value, trace::EndOf of);
    void send_intervals(std::uint64_t executed);

    TraceTables& tables_;
    ThreadTrace& trace_;
    BlockCounts counts_;  // that have been sent
    std::uint64_t random_ = 0;
    std::uint64_t rest_ = 0;           // of the period, behind its burst
    std::size_t point_ = 0;            // the next one, or the one that it is in
    bool has_points_ = false;          // else periods
    std::uint64_t boundary_ = 0;       // instructions up to which is counted down
    std::uint64_t next_interval_ = 0;  // where it begins; 0: there are none
    std::int64_t standing_ = 0;        // the countdown, while the time stands still
    bool stands_still_ = false;
    Part part_ = Part::kRest;
};

// Intervals of instructions: every N of them that a thread executes, it tells the collector how
// often it has entered which block (trace_capture_intervals).
//
// An interval ends behind an instruction, anywhere in a block, and is exact. Counting instructions
// down before each block would be dear, so it is done in two ways, each with translations of its
// own (Version):
//
//   - far from the end (kCollecting): only where a unit is entered by a jump, and at the heads of
//     loops within it, by the number of instructions from there to the next such place or the
//     unit's end, and perhaps of others that it leads into the middle of. That is at least what is
//     executed: the countdown runs out too early, never too late. Then the driver finds out from
//     the block counters how many instructions really remain, and the countdown begins anew from
//     there.
//   - near the end (kExact): before each block, by its number of instructions. A block before which
//     the countdown runs out is the one that the end lies in.
//
// The remaining instructions shrink geometrically with each look at the counters: there are about
// a dozen in an interval of a hundred million.
//
// What has been counted up to the end is sent, and what of the last block belongs to the next
// interval is given back: the block will be counted as a whole.

// Of one thread. For whoever holds the driver's lock.
class Intervals {
  public:
    Intervals(TraceTables& tables, ThreadTrace& trace)
        : tables_(tables), trace_(trace), counts_(trace) {}

    bool wanted() const { return length() != 0; }
    // Whether translated code must count each block down.
    bool near_end() const { return near_end_; }

    // The thread begins.
    void begin(Context& context);
    // The same in a new image, whose counters are zero.
    void begin_image(Context& context);
    // The thread ends: sends what has been counted since the last interval's end.
    void end();
    // The countdown has run out before `block`, having counted it.
    void reach(Context& context, const Block& block);
    // `block` has been left early: `executed` of its instructions were executed, while its counter
    // says (counted) all of them or none.
    void left_early(Context& context, const Block& block, std::uint32_t executed, bool counted);
    // Sends what left_early() has noted. Not in a handler of a signal.
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
    BlockCounts counts_;  // that have been sent
    std::vector<Correction> corrections_;
    std::int64_t corrected_ = 0;  // since the last end, what the counters do not say
    std::int64_t goal_ = 0;       // from the last end to the next
    std::int64_t postponed_ = 0;  // of the next end
    bool near_end_ = false;
};

}  // namespace assay::native
