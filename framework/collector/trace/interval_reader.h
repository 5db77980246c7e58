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
    trace_interval_t row;  // points there
};

class IntervalReader {
  public:
    // Takes the records of one buffer. Returns the intervals that end in it, until the next call.
    std::span<const Interval> take(std::uint32_t thread, std::uint32_t slot,
                                   std::span<const trace_record_t> records, const CodeTables& code,
                                   bool warm_up = false);
    // With `warm_up`, what it says of blocks belongs to no interval.
    // At the end, for each slot with its final counters: what its last thread has not sent.
    void take_rest(std::uint32_t thread, std::uint32_t slot,
                   std::span<const std::uint64_t> counters, const CodeTables& code);
    // Behind that: the unfinished interval of each thread, in the order of their numbers.
    // `executed`: how many instructions a thread has executed; see estimate().
    std::span<const Interval> rests(
        const std::function<std::uint64_t(std::uint32_t thread)>& executed = {});
    // With --sample: what is counted in an interval is a part of it, which stands for the whole.
    void estimate() { estimates_ = true; }

  private:
    // Of one thread, since its last interval. An interval that ends within a block gives the rest
    // of it back, and the driver may go on with another translation of it: therefore all of one
    // address are one, the first of them.
    struct Unfinished {
        std::vector<std::int64_t> instructions;  // by block
        std::vector<std::uint32_t> touched;      // of these, may repeat
        // Instead of the first, of those that are touched, while the thread uses no slot: a program
        // can have any number of threads one after the other.
        std::vector<std::int64_t> put_away;
        std::uint64_t complete = 0;  // instructions of complete intervals
    };

    void learn(const CodeTables& code);
    // Of the thread, which uses the slot now.
    Unfinished& unfinished_of(std::uint32_t thread, std::uint32_t slot);
    static void put_away(Unfinished& unfinished);
    static void take_up(Unfinished& unfinished);
    void add(Unfinished& to, std::uint32_t block, std::int64_t instructions);
    void count(Unfinished& to, std::uint32_t slot, std::uint32_t block, std::uint64_t counter,
               const CodeTables& code, bool warm_up = false);
    Interval finish(std::uint32_t thread, bool complete, Unfinished& unfinished,
                    std::uint64_t length) const;

    std::unordered_map<std::uint64_t, std::uint32_t> first_at_;  // blocks by address
    std::vector<std::uint32_t> first_;  // by block: the first one of its address
    std::map<std::uint32_t, Unfinished> threads_;
    std::map<std::uint32_t, std::uint32_t> users_;  // by slot: the thread that has used it last
    std::map<std::uint32_t, std::vector<std::uint64_t>> counters_;  // by slot: as last sent
    std::vector<Interval> finished_;
    bool estimates_ = false;
};

}  // namespace assay::collector
