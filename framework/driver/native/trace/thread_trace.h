// What one thread writes to the trace segment: its slot, with the counters of blocks, and its ring
// of trace buffers. Only the thread itself calls these methods.
#pragma once

#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/trace/trace_tables.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace assay::native {

class ThreadTrace {
  public:
    // Maps the slot `number` with a ring of `buffers` behind a new context, because both must lie
    // side by side; nullptr on failure. They stay mapped: threads use them one after the other.
    Context* map(TraceTables& tables, std::uint32_t number, std::uint32_t buffers);
    // Maps another slot in place of the one that is mapped, with the same ring. False on failure.
    bool map_slot(std::uint32_t number);
    // The slot belongs to this thread from now on; it has the number `thread` in the trace.
    void begin(std::uint32_t thread);
    // Gives the records to the collector that are in the unfinished buffer, and with Filter::kRuns,
    // of all references that were left out so far.
    void end();

    // Appends one record (the cursor must be in memory, not in a register).
    void append(std::uint64_t value, std::uint32_t site, std::uint32_t aux = 0);
    // The same with records that must not lie in two buffers, at most kMostTogether.
    void append(std::span<const trace_record_t> records);
    // What the trace says at this point, as of a marker: TRACE_MARKER_*, or of assay/client.h. Like
    // the next two, for who holds the driver's lock.
    void note(std::uint64_t operation, const std::array<std::uint64_t, 5>& arguments,
              std::string_view text);
    // Tells profilers that the thread is about to create another one, and that it ends.
    void note_new_thread(std::uint32_t number);
    void note_end();
    // With Spec::captures of mappings, if others of the process may do something next: what has
    // been told so far is the collector's before that.
    void hand_over();
    // Hands the current buffer, filled up to `cursor`, to the collector and waits for a free one.
    // Returns the start of the next. Async-signal-safe.
    std::uint64_t next_buffer(std::uint64_t cursor);
    // Sees to it that so many records follow one another in one buffer.
    void make_room(std::size_t records);
    // What is referenced from now on is told even if its line was the most recent one of its set.
    void forget_recent_lines();
    // Of ThreadSlot::footprints, by where the entry is in the data filter.
    std::atomic<std::uint64_t>& touched(std::uint64_t place) const;
    // True if a store to `address`, in a record that one behind at most kMostTogether others,
    // ran over the end of the current buffer.
    bool is_behind_buffer(std::uint64_t address) const;
    void set_cursor(std::uint64_t cursor) {
        slot_->cursor.store(cursor, std::memory_order_relaxed);
    }
    // The buffer before the one that the cursor is in: full, and not used again soon.
    std::span<const trace_record_t> last_buffer() const;

    // Where the next record goes: the number of the buffer, and of the record in it.
    struct Position {
        std::uint32_t buffer, record;
    };
    Position position() const;
    std::uint32_t slot() const { return number_; }
    std::uint32_t thread() const { return slot_->thread.load(std::memory_order_relaxed); }
    // Those of this slot, trace::counters() of each block that there is.
    std::span<const std::uint64_t> counters() const;
    std::size_t counters_per_block() const { return trace::counters(tables_->spec()); }
    // How often its branch was mispredicted, with predictions.
    std::uint64_t mispredictions(std::uint32_t block) const;
    // What the collector shall take for the number of instructions that the thread has executed.
    void set_executed(std::uint64_t instructions) {
        slot_->executed.store(instructions, std::memory_order_relaxed);
    }

    // With Spec::objects: what the process has executed. While the thread hears of no other it
    // counts on by itself.
    void set_time(std::uint64_t instructions);

    // Replaces what is shared with the collector by memory of this process: the child of a fork.
    void detach();

    static constexpr std::uint32_t kMostTogether = trace::kMostValueRecords + 1;
    static_assert(kMostTogether * sizeof(trace_record_t) <= 4096, "the page behind a buffer");

  private:
    bool map_first_level(unsigned char* context) const;
    bool map_call_tree(Context& context);
    std::uint64_t buffer_end() const;
    std::uint64_t complete(std::uint32_t records);
    std::span<trace::Run> runs() const;
    // With Filter::kRuns: appends the records of what was left out so far.
    void tell_runs();
    void end_runs();
    void take_footprints(std::uint32_t index);
    void forget_lines();
    const Context& context() const;
    std::uint64_t buffer_address(std::uint32_t number) const;

    TraceTables* tables_ = nullptr;
    trace::ThreadSlot* slot_ = nullptr;
    std::uint32_t number_ = 0;     // of the slot
    std::uint64_t ring_ = 0;       // buffers with a guard page behind each
    std::uint32_t buffers_ = 0;    // a power of two
    std::uint64_t of_others_ = 0;  // instructions, as of set_time()
    // With contexts.
    trace::ContextNodes* nodes_ = nullptr;
    CallTree* call_tree_ = nullptr;
};

// What a thread has executed of each block since that was last taken: by the block counters, of
// which few change between two looks.

// Of one slot. For whoever holds the driver's lock.
class BlockCounts {
  public:
    explicit BlockCounts(const ThreadTrace& trace) : trace_(trace) {}

    // Nothing has been taken of counters that are all zero.
    void forget() { taken_.clear(); }
    // As if what the counters say had been taken.
    void skip() {
        const std::span<const std::uint64_t> now = trace_.counters();
        taken_.assign(now.begin(), now.end());
    }
    // Calls `visit(block, executions, executions when last taken)` where these differ, in the order
    // of blocks.
    template <typename Visit>
    void look(const Visit& visit) {
        for_each_changed([&](std::size_t at, std::uint64_t now, std::uint64_t before) {
            visit(static_cast<std::uint32_t>(at / each()), now, before);
        });
    }
    // The same, and takes them.
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
        constexpr std::size_t kTogether = 64;  // whole blocks
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
    std::vector<std::uint64_t> taken_;  // counters, as they were
};

}  // namespace assay::native
