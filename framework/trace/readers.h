// The progress of several collectors that read one segment, which a replay fills for all of them.
//
// The driver of a program has one collector, which gives buffers back by ThreadSlot::consumed. The
// readers of a replay share the buffers. Each reader says here which buffers it has finished.
#pragma once

#include "framework/trace/futex.h"
#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace assay::trace {

// Lies in zeroed memory that the processes share.
struct Readers {
    static constexpr std::uint32_t kMost = 64;

    // --- For the driver.

    // How many buffers of the slot all readers have given back, except those that are gone.
    std::uint32_t consumed_by_all(std::uint32_t slot, std::uint32_t produced) const {
        std::uint32_t most_left = 0;
        for (std::uint32_t reader = 0; reader < count; ++reader)
            if (!gone[reader].load(std::memory_order_acquire))
                most_left = std::max(
                    most_left, produced - consumed[slot][reader].load(std::memory_order_seq_cst));
        return produced - most_left;
    }
    // Waits until `changes` is not `changes_seen`: a reader has given buffers back, or is gone.
    void wait(std::uint32_t changes_seen) {
        writer_waits.store(1, std::memory_order_seq_cst);
        futex_wait(changes, changes_seen, nullptr);
        writer_waits.store(0, std::memory_order_relaxed);
    }

    // --- For a reader, and for the process that sees the end of a reader.

    void give_back(std::uint32_t reader, std::uint32_t slot, std::uint32_t buffers) {
        consumed[slot][reader].store(buffers, std::memory_order_seq_cst);
        tell();
    }
    void leave(std::uint32_t reader) {
        gone[reader].store(true, std::memory_order_release);
        tell();
    }

    std::uint32_t count;
    std::atomic<std::uint32_t> changes;  // a futex
    std::atomic<std::uint32_t> writer_waits;
    std::atomic<bool> gone[kMost];
    // The number of buffers given back, by slot.
    std::atomic<std::uint32_t> consumed[kMaxThreads][kMost];

  private:
    // No wake is lost: the writer sets `writer_waits` before it looks at `changes`, and a reader
    // changes `changes` before it looks at `writer_waits`.
    void tell() {
        changes.fetch_add(1, std::memory_order_seq_cst);
        if (writer_waits.load(std::memory_order_seq_cst)) futex_wake(changes);
    }
};

}  // namespace assay::trace
