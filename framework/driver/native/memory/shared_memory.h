// Which memory of the program other processes may have, too: mapped with MAP_SHARED, or attached by
// shmat(2). For futex(2), which is among processes there.
#pragma once

#include "framework/driver/native/memory/own_memory.h"

#include <cstdint>
#include <iterator>
#include <map>

namespace assay::native {

class SharedMemory {
  public:
    // What has been mapped there.
    void note(const Range& range, bool shared) {
        if (ranges_.empty() && !shared) return;
        // What is left on both sides of those that it replaces.
        auto at = ranges_.lower_bound(range.start);
        if (at != ranges_.begin()) at = std::prev(at);
        while (at != ranges_.end() && at->first < range.end) {
            const auto [start, end] = *at;
            if (end <= range.start) {
                ++at;
                continue;
            }
            at = ranges_.erase(at);
            if (start < range.start) ranges_.emplace(start, range.start);
            if (end > range.end) at = ranges_.emplace(range.end, end).first;
        }
        if (shared) ranges_.emplace(range.start, range.end);
    }
    bool has(std::uint64_t address) const {
        const auto above = ranges_.upper_bound(address);
        return above != ranges_.begin() && address < std::prev(above)->second;
    }

  private:
    std::map<std::uint64_t, std::uint64_t> ranges_;  // ends by starts; they do not overlap
};

}  // namespace assay::native
