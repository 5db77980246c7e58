// A value for each address: for ranges of memory of which something is known.
#pragma once

#include "framework/driver/native/memory/own_memory.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace assay::native {

// Neighbours with the same value are one range. Where nothing has been set the value is Value{}.
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
    // Calls `visit(part, value)` for all of the range, in the order of addresses.
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
    // No range has both what is below `address` and what is not.
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

    Ranges ranges_;  // by where they start; they do not overlap
};

}  // namespace assay::native
