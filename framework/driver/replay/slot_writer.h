// The slot of a thread in all segments that a replay fills.
#pragma once

#include "framework/driver/replay/miss_filter.h"
#include "framework/driver/replay/segment_writer.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace assay::replay {

class SlotWriter {
  public:
    // Its part in one of the segments.
    struct Output {
        RingWriter& ring;
        MissFilter filter;
    };

    // `common`: of what no output wants.
    SlotWriter(MissFilter common, std::vector<Output> outputs)
        : common_(std::move(common)), outputs_(std::move(outputs)) {}
    SlotWriter(const SlotWriter&) = delete;
    SlotWriter& operator=(const SlotWriter&) = delete;

    // Of another thread than before.
    void set_thread(std::uint32_t thread);
    std::uint32_t thread() const { return thread_; }
    void set_executed(std::uint64_t instructions) {
        for (Output& output : outputs_) output.ring.set_executed(instructions);
    }
    void append(std::uint64_t value, std::uint32_t site, std::uint32_t aux = 0) {
        if (next_ == staged_.data() + staged_.size()) pass_on();
        *next_++ = {value, site, aux};
    }
    // Within one buffer. So few that they fit what has not been passed on, or they are divided.
    void append_together(std::span<const trace_record_t> records);
    // Gives what there is to the rings.
    void pass_on();
    // And to the readers, and waits until all have left room.
    void complete();
    // The first segment's. Those of the others follow with copy_counters().
    std::uint64_t* counters() const { return outputs_.front().ring.counters(); }
    void copy_counters(std::size_t count) const;
    // With kCaptureContexts, of nodes with so many words each: likewise. Those of the others follow
    // before any record that tells of them; their counts, with copy_nodes().
    trace::ContextNodes* begin_nodes(std::uint32_t words);
    void copy_nodes() const { copy_nodes_from(0); }
    // Whether it does so in one of them: trace::tells_contexts().
    bool tells_contexts() const;
    const std::vector<Output>& outputs() const { return outputs_; }

  private:
    void copy_new_nodes();
    void copy_nodes_from(std::uint32_t first) const;

    MissFilter common_;
    std::vector<Output> outputs_;
    std::uint32_t thread_ = 0;
    std::uint32_t node_words_ = 0;
    std::uint32_t copied_nodes_ = 0;
    // What no output has yet: so few that they stay in the processor's cache.
    std::array<trace_record_t, 1024> staged_;
    trace_record_t* next_ = staged_.data();
};

}  // namespace assay::replay
