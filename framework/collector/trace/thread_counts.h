// The executions that the threads of a program count in the trace segment: by basic block, and of
// blocks that were left early. The program can overwrite them, so limits are checked.
#pragma once

#include "framework/collector/trace/segment.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::collector {

class ThreadCounts {
  public:
    // Both must outlive this. `code` grows.
    ThreadCounts(const Segment& segment, const CodeTables& code) : segment_(segment), code_(code) {}
    // Adds a trace::PartialEvent in the event log. Its count still increases.
    void add_left_early(const std::byte* event) { partials_.push_back(event); }

    // Called after the driver's end, if block counts were captured. Returns a text about counts
    // that threads cannot reach in this time, or "". Impossible counts are 0 from then on.
    std::string impossible(std::chrono::duration<double> time);

    // Returns executions by instruction, from the block counters and the blocks left early. Exact
    // after the driver has ended. Block counts must have been captured.
    std::vector<std::uint64_t> instruction_counts() const;
    // Returns the executions of blocks that a fault ended early. Exact after the driver has ended.
    std::vector<trace::PartialEvent> left_early() const;
    // The number of slots that threads have used; and how often all threads of a slot have entered
    // each block.
    std::uint32_t slots() const;
    std::vector<std::uint64_t> block_counts(std::uint32_t slot) const;
    // The last thread that used the slot.
    std::uint32_t thread_of(std::uint32_t slot) const;
    // The number of threads so far.
    std::uint32_t threads() const;
    // With sampling: the number of instructions that the thread of the slot has executed.
    std::uint64_t executed(std::uint32_t slot) const;
    // Mispredictions by block, of all slots or of one; empty if they are not captured.
    std::vector<std::uint64_t> mispredictions() const;
    std::vector<std::uint64_t> mispredictions(std::uint32_t slot) const;
    // Returns roughly the number of executed instructions so far. Reads all counters of all
    // threads.
    std::uint64_t instructions() const;

  private:
    std::vector<std::uint64_t> counters() const;
    std::vector<std::uint64_t> counters(std::uint32_t slot) const;
    std::vector<std::uint64_t> mispredictions_by_block(const std::vector<std::uint64_t>& all) const;
    std::size_t counters_per_block() const;
    std::vector<std::uint64_t> sums_by_block(std::vector<std::uint64_t> all) const;
    std::vector<std::uint64_t> block_counts() const;
    std::string impossible_counters(std::uint32_t slot, double seconds) const;
    std::string impossible_partials() const;

    const Segment& segment_;
    const CodeTables& code_;
    std::vector<const std::byte*> partials_;      // events with counts that still increase
    std::uint64_t most_executions_ = UINT64_MAX;  // limit for a block and a thread
    std::uint64_t most_instrs_ = UINT64_MAX;      // limit for the instructions of a thread
};

}  // namespace assay::collector
