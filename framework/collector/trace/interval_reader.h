// Makes the intervals of trace_parser_next_interval from the records of threads: see Intervals of
// the driver.
#pragma once

#include "assay/trace_parse.h"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::collector {

struct CodeTables;

struct Interval {
    std::vector<trace_interval_block_t> blocks;
    trace_interval_t row;  // points to `blocks`
};

class IntervalReader {
  public:
    // Takes the records of one buffer. Returns the intervals that end in it; they are valid until
    // the next call. With `warm_up`, the block counts belong to no interval.
    std::span<const Interval> take(std::uint32_t thread, std::uint32_t slot,
                                   std::span<const trace_record_t> records, const CodeTables& code,
                                   bool warm_up = false);
    // Called at the end for each slot, with its final counters: adds executions that its last
    // thread has not recorded.
    void take_rest(std::uint32_t thread, std::uint32_t slot,
                   std::span<const std::uint64_t> counters, const CodeTables& code);
    // Called after take_rest(). Returns the unfinished interval of each thread, in the order of
    // thread numbers. `executed` returns the number of instructions of a thread; it is needed after
    // estimate().
    std::span<const Interval> rests(
        const std::function<std::uint64_t(std::uint32_t thread)>& executed = {});
    // With --sample: scales the counts of each interval, which has counts from bursts only, to its
    // whole length.
    void estimate() { estimates_ = true; }

  private:
    // Executions of one thread since its last interval. If an interval ends within a block, the
    // rest of the block is subtracted. The driver may continue in another translation of the block.
    // Therefore all blocks of one address count as the first of them.
    struct Unfinished {
        std::vector<std::int64_t> instructions;  // by block
        std::vector<std::uint32_t> touched;      // blocks in `instructions`, may repeat
        // Replaces `instructions` while the thread uses no slot, with one value per block of
        // `touched`. This saves memory: a program can have any number of threads, one after
        // another.
        std::vector<std::int64_t> put_away;
        std::uint64_t complete = 0;  // number of instructions in complete intervals
    };

    void learn(const CodeTables& code);
    // Also makes the thread the present user of the slot.
    Unfinished& unfinished_of(std::uint32_t thread, std::uint32_t slot);
    static void put_away(Unfinished& unfinished);
    static void take_up(Unfinished& unfinished);
    void add(Unfinished& to, std::uint32_t block, std::int64_t instructions);
    void count(Unfinished& to, std::uint32_t slot, std::uint32_t block, std::uint64_t counter,
               const CodeTables& code, bool warm_up = false);
    Interval finish(std::uint32_t thread, bool complete, Unfinished& unfinished,
                    std::uint64_t length) const;

    std::unordered_map<std::uint64_t, std::uint32_t> first_at_;  // blocks by address
    std::vector<std::uint32_t> first_;      // by block: the first block of its address
    std::vector<std::uint64_t> addresses_;  // by block
    std::map<std::uint32_t, Unfinished> threads_;
    std::map<std::uint32_t, std::uint32_t> users_;  // by slot: the last thread that used it
    std::map<std::uint32_t, std::vector<std::uint64_t>> counters_;  // by slot: as last recorded
    std::vector<Interval> finished_;
    bool estimates_ = false;
};

}  // namespace assay::collector
