// The program's mappings that the driver has to know: executable ones, and memory that processes
// share. Updated by the driver when the program changes its memory.
#pragma once

#include "framework/driver/native/memory/own_memory.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>

namespace assay::native {

// Maps each address to a value, for ranges of memory. Neighbours with the same value are one range.
// Addresses without a value have Value{}.
template <typename Value>
class RangeMap {
  public:
    void set(const Range& range, Value value) {
        if (range.start >= range.end) return;
        divide(range.start);
        divide(range.end);
        auto at = ranges_.erase(ranges_.lower_bound(range.start), ranges_.lower_bound(range.end));
        if (value == Value{}) return;
        at = ranges_.emplace_hint(at, range.start, Known{range.end, value});
        join_with_next(at);
        if (at != ranges_.begin()) join_with_next(std::prev(at));
    }
    // Calls `visit(part, value)` for all parts of the range, in the order of addresses.
    template <typename Visit>
    void each(const Range& range, const Visit& visit) const {
        auto next = holding(range.start);
        if (next == ranges_.end()) next = ranges_.lower_bound(range.start);
        for (std::uint64_t start = range.start; start < range.end;) {
            const bool here = next != ranges_.end() && next->first <= start;
            const std::uint64_t end = here                    ? next->second.end
                                      : next != ranges_.end() ? next->first
                                                              : range.end;
            const Range part{start, std::min(end, range.end)};
            visit(part, here ? next->second.value : Value{});
            start = part.end;
            if (here) ++next;
        }
    }

  private:
    struct Known {
        std::uint64_t end;
        Value value;
    };
    using Ranges = std::map<std::uint64_t, Known>;

    typename Ranges::const_iterator holding(std::uint64_t address) const {
        const auto above = ranges_.upper_bound(address);
        if (above == ranges_.begin()) return ranges_.end();
        const auto found = std::prev(above);
        return address < found->second.end ? found : ranges_.end();
    }
    // Splits a range that contains `address` into one that ends there and one that starts there.
    void divide(std::uint64_t address) {
        const auto above = ranges_.lower_bound(address);
        if (above == ranges_.begin()) return;
        Known& known = std::prev(above)->second;
        if (known.end <= address) return;
        ranges_.emplace_hint(above, address, known);
        known.end = address;
    }
    void join_with_next(typename Ranges::iterator at) {
        const auto next = std::next(at);
        if (next == ranges_.end() || next->first != at->second.end ||
            next->second.value != at->second.value)
            return;
        at->second.end = next->second.end;
        ranges_.erase(next);
    }

    Ranges ranges_;  // by start; ranges do not overlap
};

struct Region {
    std::uint64_t start = 0, end = 0;
    bool executable = true;  // also if it was, and may still have translations
    bool writable = false;
    // Code may have changed since translation: the region is or was writable, or has no file.
    bool changeable = false;
    bool shared = false;  // other mappings, perhaps writable ones, may show the same memory

    bool is_like(const Region& other) const {
        return executable == other.executable && writable == other.writable &&
               changeable == other.changeable && shared == other.shared;
    }
};

class MemoryMap {
  public:
    // Replaces all regions in the range.
    void add(const Region& region);
    // Removes all regions in the range; true if there was one.
    bool remove(std::uint64_t start, std::uint64_t end);
    // The region that contains `pc`, or nullptr.
    const Region* find(std::uint64_t pc) const;
    // The end of the region that contains the address. Without one, the start of the next region.
    std::uint64_t end_of_part(std::uint64_t address) const;
    // True if a region overlaps [start, end).
    bool overlaps(std::uint64_t start, std::uint64_t end) const;
    // The bytes of the instruction at `pc`, as many as can be read. Empty if the memory is not
    // executable or cannot be read, for example because the file was truncated.
    std::span<const std::uint8_t> code_at(std::uint64_t pc) const;

  private:
    std::map<std::uint64_t, Region> regions_;  // by start
    mutable Region last_;
};

// The program's memory that other processes may also have: mapped with MAP_SHARED, or attached by
// shmat(2). A futex(2) in such memory works between processes.

class SharedMemory {
  public:
    // To be called for each new mapping.
    void note(const Range& range, bool shared) {
        if (ranges_.empty() && !shared) return;
        // Keeps the parts of old ranges on both sides of the new one.
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
    std::map<std::uint64_t, std::uint64_t> ranges_;  // start -> end; ranges do not overlap
};

}  // namespace assay::native
