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
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/trace/block_counts.h"
#include "framework/driver/native/trace/thread_trace.h"

#include <cstdint>
#include <vector>

namespace assay::native {

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
