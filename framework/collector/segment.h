// The collector's mapping of the trace segment (framework/trace/segment_layout.h).
#pragma once

#include "framework/trace/command_event.h"
#include "framework/trace/segment_layout.h"

#include <cstddef>

namespace assay::collector {

class Segment {
  public:
    // A new segment for the first image of a process, zeroed but for what its driver has to know.
    // Throws Error.
    explicit Segment(const trace::Command& command);
    // The one that a driver has made; takes the descriptor. Throws Error.
    explicit Segment(int fd);
    ~Segment();
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    // Closed on exec.
    int fd() const { return fd_; }

    // The first event of the log. Throws Error if it is another.
    trace::Command command() const;

    trace::Control& control() const { return at<trace::Control>(trace::kControlOffset); }
    const std::byte* event_log() const { return base_ + trace::kEventLogOffset; }
    const trace_block_t* blocks() const { return &at<trace_block_t>(trace::kBlocksOffset); }
    const trace_instr_t* instrs() const { return &at<trace_instr_t>(trace::kInstrsOffset); }
    const trace_site_t* sites() const { return &at<trace_site_t>(trace::kSitesOffset); }

    trace::ThreadSlot& slot(std::uint32_t thread) const {
        return at<trace::ThreadSlot>(trace::thread_offset(thread));
    }
    const std::uint64_t* counters(std::uint32_t thread) const {
        return &at<std::uint64_t>(trace::thread_offset(thread) + trace::kCountersOffset);
    }
    const trace_record_t* buffer(std::uint32_t thread, std::uint32_t number) const {
        const std::uint64_t index = number % trace::kBufferCount;
        return &at<trace_record_t>(trace::thread_offset(thread) + trace::kRingOffset +
                                   index * trace::kBufferBytes);
    }

  private:
    void map();

    template <typename T>
    T& at(std::uint64_t offset) const {
        return *reinterpret_cast<T*>(base_ + offset);
    }

    int fd_ = -1;
    std::byte* base_ = nullptr;
};

}  // namespace assay::collector
