// What a thread has executed of each block since that was last taken: by the block counters, of
// which few change between two looks.
#pragma once

#include "framework/driver/native/trace/thread_trace.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

namespace assay::native {

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
