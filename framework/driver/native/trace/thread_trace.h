// The part of the trace segment that one thread writes: its slot, with the counters of blocks, and
// its ring of trace buffers. Only the thread itself calls these methods.
#pragma once

#include "framework/driver/native/machine/context.h"
#include "framework/driver/shared/trace_tables.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace assay::native {

using driver::NewImage;
using driver::RunNumbers;
using driver::TableRows;
using driver::TraceTables;

class ThreadTrace {
  public:
    // Maps the slot `number` with a ring of `buffers` after a new context, because both must lie
    // side by side. Returns nullptr on failure. The mapping stays for later threads.
    Context* map(TraceTables& tables, std::uint32_t number, std::uint32_t buffers);
    // Replaces the mapped slot by another one, with the same ring. False on failure.
    bool map_slot(std::uint32_t number);
    // The slot now belongs to the thread with the number `thread` in the trace.
    void begin(std::uint32_t thread);
    // Gives the unfinished buffer to the collector. With Filter::kRuns, first appends records of
    // all references that were left out so far.
    void end();

    // Appends one record. The cursor must be in memory, not in a register.
    void append(std::uint64_t value, std::uint32_t site, std::uint32_t aux = 0);
    // Appends records that must lie in one buffer: at most kMostTogether.
    void append(std::span<const trace_record_t> records);
    // Writes a marker at this point of the trace: TRACE_MARKER_* or one of assay/client.h. The
    // caller of this and of the next two must hold the driver's lock.
    void note(std::uint64_t operation, const std::array<std::uint64_t, 5>& arguments,
              std::string_view text);
    // Tells profilers that the thread is about to create another thread, or that it ends.
    void note_new_thread(std::uint32_t number);
    void note_end();
    // With the capture of mappings: gives the collector all records so far. Call this before other
    // threads of the process may continue.
    void hand_over();
    // Gives the current buffer, filled up to `cursor`, to the collector, and waits for a free one.
    // Returns the begin of the next buffer. Async-signal-safe.
    std::uint64_t next_buffer(std::uint64_t cursor);
    // Makes sure that the next `records` records fit into one buffer.
    void make_room(std::size_t records);
    // Empties the filter, so that the next reference to each line is recorded.
    void forget_recent_lines();
    // The entry of ThreadSlot::footprints. `place`: the offset of the set in the data filter.
    std::atomic<std::uint64_t>& touched(std::uint64_t place) const;
    // True if a store to `address` ran over the end of the current buffer. The store belongs to a
    // record with at most kMostTogether before it.
    bool is_behind_buffer(std::uint64_t address) const;
    void set_cursor(std::uint64_t cursor) {
        slot_->cursor.store(cursor, std::memory_order_relaxed);
    }
    // The buffer before the current one: full, and not used again soon.
    std::span<const trace_record_t> last_buffer() const;

    // The place of the next record: the number of its buffer, and its number in the buffer.
    struct Position {
        std::uint32_t buffer, record;
    };
    Position position() const;
    std::uint32_t slot() const { return number_; }
    std::uint32_t thread() const { return slot_->thread.load(std::memory_order_relaxed); }
    // The counters of this slot: trace::counters() for each existing block.
    std::span<const std::uint64_t> counters() const;
    std::size_t counters_per_block() const { return trace::counters(tables_->spec()); }
    // With predictions: how often the block's branch was mispredicted.
    std::uint64_t mispredictions(std::uint32_t block) const;
    // Tells the collector how many instructions the thread has executed.
    void set_executed(std::uint64_t instructions) {
        slot_->executed.store(instructions, std::memory_order_relaxed);
    }

    // With Spec::objects: the instructions that the process has executed. The thread adds its own
    // to this number until the next call.
    void set_time(std::uint64_t instructions);

    // For the child of a fork: replaces memory that is shared with the collector by private memory.
    void detach();

    static constexpr std::uint32_t kMostTogether = trace::kMostValueRecords + 1;
    static_assert(kMostTogether * sizeof(trace_record_t) <= 4096, "the page behind a buffer");

  private:
    bool map_first_level(unsigned char* context) const;
    bool map_call_tree(Context& context);
    std::uint64_t buffer_end() const;
    std::uint64_t complete(std::uint32_t records);
    std::span<trace::Run> runs() const;
    // With Filter::kRuns: appends records of the references that were left out so far.
    void tell_runs();
    void end_runs();
    void take_footprints(std::uint32_t index);
    void forget_lines();
    const Context& context() const;
    std::uint64_t buffer_address(std::uint32_t number) const;

    TraceTables* tables_ = nullptr;
    trace::ThreadSlot* slot_ = nullptr;
    std::uint32_t number_ = 0;     // of the slot
    std::uint64_t ring_ = 0;       // buffers, each with a guard page at its end
    std::uint32_t buffers_ = 0;    // a power of two
    std::uint64_t of_others_ = 0;  // instructions, from set_time()
    // With contexts.
    trace::ContextNodes* nodes_ = nullptr;
    CallTree* call_tree_ = nullptr;
};

// Finds the executions of blocks since the last look. Few counters change between two looks.

// For one slot. The caller must hold the driver's lock.
class BlockCounts {
  public:
    explicit BlockCounts(const ThreadTrace& trace) : trace_(trace) {}

    // All counters are zero now.
    void forget() { taken_.clear(); }
    // Takes the present counters without a visit.
    void skip() {
        const std::span<const std::uint64_t> now = trace_.counters();
        taken_.assign(now.begin(), now.end());
    }
    // Calls `visit(block, executions, executions when last taken)` where the two numbers differ, in
    // the order of blocks.
    template <typename Visit>
    void look(const Visit& visit) {
        for_each_changed([&](std::size_t at, std::uint64_t now, std::uint64_t before) {
            visit(static_cast<std::uint32_t>(at / each()), now, before);
        });
    }
    // The same. It also takes the visited counters.
    template <typename Visit>
    void take(const Visit& visit) {
        for_each_changed([&](std::size_t at, std::uint64_t now, std::uint64_t before) {
            std::copy_n(trace_.counters().begin() + static_cast<std::ptrdiff_t>(at), each(),
                        taken_.begin() + static_cast<std::ptrdiff_t>(at));
            visit(static_cast<std::uint32_t>(at / each()), now, before);
        });
    }

  private:
    std::size_t each() const { return trace_.counters_per_block(); }

    template <typename Change>
    void for_each_changed(const Change& change) {
        constexpr std::size_t kTogether = 64;  // a multiple of the counters of a block
        const std::span<const std::uint64_t> now = trace_.counters();
        taken_.resize(std::max(taken_.size(), now.size()));
        for (std::size_t first = 0; first < now.size(); first += kTogether) {
            const std::size_t end = std::min(first + kTogether, now.size());
            if (std::memcmp(&now[first], &taken_[first], (end - first) * sizeof now[0]) == 0)
                continue;
            for (std::size_t at = first; at < end; at += each()) {
                const std::uint64_t count = sum(&now[at]), before = sum(&taken_[at]);
                if (count != before) change(at, count, before);
            }
        }
    }
    std::uint64_t sum(const std::uint64_t* counters) const {
        return std::accumulate(counters, counters + each(), std::uint64_t{0});
    }

    const ThreadTrace& trace_;
    std::vector<std::uint64_t> taken_;  // the counters when they were last taken
};

}  // namespace assay::native
