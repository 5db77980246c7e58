// Writes a trace segment as a driver does, inside another process.
#pragma once

#include "framework/driver/replay/miss_filter.h"
#include "framework/trace/readers.h"
#include "framework/trace/segment_layout.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::replay {

// A thread's slot: its counters, and its ring.
class RingWriter {
  public:
    // Maps the slot. Throws Error.
    RingWriter(int segment, trace::Control& control, trace::Readers& readers, std::uint32_t number);
    ~RingWriter();
    RingWriter(const RingWriter&) = delete;
    RingWriter& operator=(const RingWriter&) = delete;

    const trace::Spec& spec() const { return control_.spec; }
    void set_thread(std::uint32_t thread) { slot_->thread.store(thread); }
    // With bursts: ThreadSlot::executed.
    void set_executed(std::uint64_t instructions) { slot_->executed.store(instructions); }
    // Leaves out the records that have missed none of the `wanted` shapes. `missed`: by record;
    // null for all records. With values, all get into one buffer if they fit.
    void append(std::span<const trace_record_t> records, const MissFilters::Shapes* missed,
                MissFilters::Shapes wanted);
    // Gives the buffer to the readers, and waits until all readers have left room.
    void complete();

    std::uint64_t* counters() const { return counters_; }
    // With kCaptureContexts: the nodes of the slot. The first call maps them. Throws Error.
    trace::ContextNodes* context_nodes();
    // Reads words of the nodes. `offset`: in bytes, from context_nodes(). Throws Error.
    void read_nodes(std::uint64_t offset, std::span<std::uint64_t> words) const;
    std::uint32_t buffer() const { return slot_->produced.load(std::memory_order_relaxed); }
    // In the present buffer.
    std::uint32_t records() const { return static_cast<std::uint32_t>(next_ - begin_); }

  private:
    void begin_buffer(std::uint32_t number);

    const int segment_;
    trace::Control& control_;
    trace::Readers& readers_;
    const std::uint32_t number_;
    std::byte* base_;
    trace::ThreadSlot* slot_;
    std::uint64_t* counters_;
    std::byte* nodes_ = nullptr;
    trace_record_t *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;
};

class SegmentWriter {
  public:
    // Throws Error.
    SegmentWriter(int segment, trace::Readers& readers);
    ~SegmentWriter();
    SegmentWriter(const SegmentWriter&) = delete;
    SegmentWriter& operator=(const SegmentWriter&) = delete;

    trace::Control& control() const;
    // Called once. `words`: by block, with kCaptureContexts. Throws Error if there is no room.
    void set_tables(std::span<const trace_block_t> blocks, std::span<const trace_instr_t> instrs,
                    std::span<const trace_site_t> sites, std::span<const std::uint16_t> words);
    // Appends an event to the log, or drops it if the log is full. `body`: a structure or nothing,
    // and text.
    void event(trace::EventType type, std::span<const std::byte> body);
    // Creates the ring, and those with lower numbers, if it does not exist.
    RingWriter& ring(std::uint32_t number);
    void set_state(trace::DriverState state);

  private:
    const int segment_;
    trace::Readers& readers_;
    std::byte* tables_;
    std::vector<std::unique_ptr<RingWriter>> rings_;
};

// A thread's slot in all segments that a replay fills.

class SlotWriter {
  public:
    // The slot in one of the segments.
    struct Output {
        RingWriter& ring;
        MissFilters::Shapes shapes;  // of `filters`
    };

    SlotWriter(MissFilters filters, std::vector<Output> outputs)
        : filters_(std::move(filters)), outputs_(std::move(outputs)) {}
    SlotWriter(const SlotWriter&) = delete;
    SlotWriter& operator=(const SlotWriter&) = delete;

    // A new thread begins in the slot.
    void set_thread(std::uint32_t thread);
    std::uint32_t thread() const { return thread_; }
    void set_executed(std::uint64_t instructions) {
        for (Output& output : outputs_) output.ring.set_executed(instructions);
    }
    void append(std::uint64_t value, std::uint32_t site, std::uint32_t aux = 0) {
        if (next_ == staged_.data() + staged_.size()) pass_on();
        *next_++ = {value, site, aux};
    }
    // Appends records that go into one buffer. There may be at most as many as `staged_` holds.
    void append_together(std::span<const trace_record_t> records);
    // Gives the staged records to the rings.
    void pass_on();
    // Completes the buffers, and waits until all readers have left room.
    void complete();
    // The counters of the first segment. copy_counters() copies them to the others.
    std::uint64_t* counters() const { return outputs_.front().ring.counters(); }
    void copy_counters(std::size_t count) const;
    // With kCaptureContexts: the nodes of the first segment, with so many words each. The other
    // segments get a new node before any record that names it, and the counts by copy_nodes().
    trace::ContextNodes* begin_nodes(std::uint32_t words);
    void copy_nodes() const;
    // True if trace::tells_contexts() holds for one of the segments.
    bool tells_contexts() const;
    const std::vector<Output>& outputs() const { return outputs_; }

  private:
    void copy_new_nodes();
    void copy_nodes_from(std::uint32_t first) const;

    MissFilters filters_;
    std::vector<Output> outputs_;
    std::uint32_t thread_ = 0;
    std::uint32_t node_words_ = 0;
    std::uint32_t copied_nodes_ = 0;
    // Records that no output has yet: few enough to stay in the processor's cache.
    std::array<trace_record_t, 1024> staged_;
    trace_record_t* next_ = staged_.data();
};

}  // namespace assay::replay
