// How far each of several collectors has read a segment that a replay fills for all of them.
//
// The driver of a program has one collector, which gives buffers back in ThreadSlot::consumed.
// Readers of a replay share the buffers, and each says here which ones it needs no more.
#pragma once

#include "framework/trace/futex.h"
#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace assay::trace {

// Zeroed memory that the processes share.
struct Readers {
    static constexpr std::uint32_t kMost = 64;

    // --- For the driver.

    // Buffers of the slot that all readers have given back. Those that are gone want none.
    std::uint32_t consumed_by_all(std::uint32_t slot, std::uint32_t produced) const {
        std::uint32_t most_left = 0;
        for (std::uint32_t reader = 0; reader < count; ++reader)
            if (!gone[reader].load(std::memory_order_acquire))
                most_left = std::max(
                    most_left, produced - consumed[slot][reader].load(std::memory_order_seq_cst));
        return produced - most_left;
    }
    // Returns when a reader has given something back, or is gone, since `changes` was what it is.
    void wait(std::uint32_t changes_seen) {
        writer_waits.store(1, std::memory_order_seq_cst);
        futex_wait(changes, changes_seen, nullptr);
        writer_waits.store(0, std::memory_order_relaxed);
    }

    // --- For a reader, and for who sees that it has ended.

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
    // By slot, how many buffers have been given back.
    std::atomic<std::uint32_t> consumed[kMaxThreads][kMost];

  private:
    // The writer announces that it waits before it looks at what it waits for again, and this is
    // changed before that is looked at.
    void tell() {
        changes.fetch_add(1, std::memory_order_seq_cst);
        if (writer_waits.load(std::memory_order_seq_cst)) futex_wake(changes);
    }
};

}  // namespace assay::trace
