#include "framework/collector/trace/thread_counts.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <utility>

namespace assay::collector {
namespace {

// Limits that no thread can reach. They assume 10 GHz, and in each cycle thirty instructions and
// two stores. A block needs one store, for its counter.
constexpr double kMostBlocksPerSecond = 2e10;
constexpr double kMostInstrsPerSecond = 3e11;

}  // namespace

std::uint32_t ThreadCounts::slots() const {
    return std::clamp(segment_.control().thread_count.load(), segment_.mapped_slots(),
                      trace::kMaxThreads);
}

std::string ThreadCounts::impossible(std::chrono::duration<double> time) {
    constexpr double kLargest = 9e18;
    std::string why;
    // The limits apply only after all slots have been checked.
    for (std::uint32_t slot = 0; slot < slots() && why.empty(); ++slot)
        why = impossible_counters(slot, time.count());
    most_executions_ =
        static_cast<std::uint64_t>(std::min(kMostBlocksPerSecond * time.count(), kLargest));
    most_instrs_ =
        static_cast<std::uint64_t>(std::min(kMostInstrsPerSecond * time.count(), kLargest));
    if (why.empty()) why = impossible_partials();
    if (why.empty()) return "";
    return fmt::format(
        "the counts are damaged ({} within {:.3g} s): the program has probably "
        "written over the driver's memory",
        why, time.count());
}

// The threads of a slot run one after another, so the limits apply to the whole slot.
std::string ThreadCounts::impossible_counters(std::uint32_t slot, double seconds) const {
    const double most_blocks = kMostBlocksPerSecond * seconds;
    const double most_instrs = kMostInstrsPerSecond * seconds;
    const std::vector<std::uint64_t> all = counters(slot);
    double blocks = 0, instrs = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const trace_block_t& block = code_.blocks[i / counters_per_block()];
        if (static_cast<double>(all[i]) > most_blocks)
            return fmt::format("the block at {:#x} executed {} times", block.pc, all[i]);
        blocks += static_cast<double>(all[i]);
        instrs += static_cast<double>(all[i]) * block.instr_count;
    }
    if (blocks > most_blocks) return fmt::format("{:.0f} basic blocks of a thread", blocks);
    instrs = std::max(instrs, static_cast<double>(executed(slot)));
    if (instrs > most_instrs) return fmt::format("{:.0f} instructions of a thread", instrs);
    return "";
}

std::string ThreadCounts::impossible_partials() const {
    if (partials_.empty()) return "";
    std::vector<std::uint64_t> left = block_counts();
    for (const std::byte* event : partials_) {
        trace::PartialEvent partial;
        std::memcpy(&partial, event, sizeof partial);
        if (partial.block >= left.size()) continue;
        std::uint64_t& count = left[partial.block];
        if (partial.times > (partial.counted ? count : most_executions_))
            return fmt::format("the block at {:#x} left early {} times",
                               code_.blocks[partial.block].pc, partial.times);
        if (partial.counted) count -= partial.times;
    }
    return "";
}

// The counters of a block are adjacent: trace::counters().
std::vector<std::uint64_t> ThreadCounts::counters() const {
    std::vector<std::uint64_t> sums(code_.blocks.size() * counters_per_block());
    for (std::uint32_t slot = 0; slot < slots(); ++slot)
        segment_.add_counters(slot, sums, most_executions_);
    return sums;
}

std::size_t ThreadCounts::counters_per_block() const {
    return trace::counters(segment_.control().spec);
}

std::vector<std::uint64_t> ThreadCounts::block_counts() const {
    return sums_by_block(counters());
}

std::vector<std::uint64_t> ThreadCounts::counters(std::uint32_t slot) const {
    std::vector<std::uint64_t> counts(code_.blocks.size() * counters_per_block());
    segment_.add_counters(slot, counts, most_executions_);
    return counts;
}

std::vector<std::uint64_t> ThreadCounts::block_counts(std::uint32_t slot) const {
    return sums_by_block(counters(slot));
}

std::vector<std::uint64_t> ThreadCounts::sums_by_block(std::vector<std::uint64_t> all) const {
    const std::size_t count = counters_per_block();
    if (count == 1) return all;
    std::vector<std::uint64_t> sums(code_.blocks.size());
    for (std::size_t i = 0; i < all.size(); ++i) sums[i / count] += all[i];
    return sums;
}

// The last thread of a slot has a higher number than all threads before it.
std::uint32_t ThreadCounts::threads() const {
    std::uint32_t highest = 0;
    for (std::uint32_t slot = 0; slot < slots(); ++slot)
        highest = std::max(highest, thread_of(slot));
    return highest + 1;
}

std::uint32_t ThreadCounts::thread_of(std::uint32_t slot) const {
    return slot < segment_.mapped_slots() ? segment_.slot(slot).thread.load() : 0;
}

std::uint64_t ThreadCounts::executed(std::uint32_t slot) const {
    if (slot >= segment_.mapped_slots()) return 0;
    const std::uint64_t count = segment_.slot(slot).executed.load();
    return count > most_instrs_ ? 0 : count;
}

std::vector<std::uint64_t> ThreadCounts::mispredictions() const {
    if (counters_per_block() == 1) return {};
    return mispredictions_by_block(counters());
}

std::vector<std::uint64_t> ThreadCounts::mispredictions(std::uint32_t slot) const {
    if (counters_per_block() == 1) return {};
    return mispredictions_by_block(counters(slot));
}

std::vector<std::uint64_t> ThreadCounts::mispredictions_by_block(
    const std::vector<std::uint64_t>& all) const {
    const std::size_t count = counters_per_block();
    std::vector<std::uint64_t> sums(code_.blocks.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = all[i * count + 1] + all[i * count + 2];
    return sums;
}

std::vector<std::uint64_t> ThreadCounts::instruction_counts() const {
    std::vector<std::uint64_t> counts(code_.instrs.size());
    const std::vector<std::uint64_t> blocks = block_counts();
    for (std::uint32_t i = 0; i < code_.blocks.size(); ++i) {
        const trace_block_t& block = code_.blocks[i];
        std::fill_n(counts.begin() + block.first_instr, block.instr_count, blocks[i]);
    }
    for (const trace::PartialEvent& partial : left_early()) {
        const trace_block_t& block = code_.blocks[partial.block];
        for (std::uint32_t i = 0; i < block.instr_count; ++i) {
            std::uint64_t& count = counts[block.first_instr + i];
            if (i < partial.executed && !partial.counted) count += partial.times;
            if (i >= partial.executed && partial.counted) count -= std::min(count, partial.times);
        }
    }
    return counts;
}

// Leaves out impossible executions, which the program must have written.
std::vector<trace::PartialEvent> ThreadCounts::left_early() const {
    std::vector<trace::PartialEvent> all;
    for (const std::byte* event : partials_) {
        trace::PartialEvent partial;
        std::memcpy(&partial, event, sizeof partial);
        if (partial.block >= code_.blocks.size() || partial.times > most_executions_) continue;
        partial.executed = std::min(partial.executed, code_.blocks[partial.block].instr_count);
        all.push_back(partial);
    }
    return all;
}

std::uint64_t ThreadCounts::instructions() const {
    const std::vector<std::uint64_t> counts = block_counts();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) sum += counts[i] * code_.blocks[i].instr_count;
    return sum;
}

}  // namespace assay::collector
