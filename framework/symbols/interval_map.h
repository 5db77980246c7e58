// Finds the address range that an address belongs to. If ranges nest or overlap, the range that
// starts last wins. Used for ELF symbols, compilation units, and functions with inlined calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay::symbols {

using Address = std::uint64_t;

// True if one of the sorted `addresses` is in [low, high).
bool any_within(std::span<const Address> addresses, Address low, Address high);

class IntervalMap {
  public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    // Adds [low, high) with a value. If ranges have the same start, the shorter range wins; if they
    // are equal, the last one added.
    void add(Address low, Address high, std::uint32_t value);
    // Call it once, after the last add() and before the first find().
    void seal();
    // The value of the range that `address` belongs to, or kNone.
    std::uint32_t find(Address address) const;
    // One value for each of the sorted `addresses`.
    std::vector<std::uint32_t> find_all(std::span<const Address> addresses) const;

  private:
    struct Interval {
        Address low, high;
        std::uint32_t value;
    };
    // `value` holds from `start` up to the next segment.
    struct Segment {
        Address start;
        std::uint32_t value;
    };

    void close_until(Address address, std::vector<Interval>& open);
    void begin_segment(Address start, std::uint32_t value);

    std::vector<Interval> intervals_;
    std::vector<Segment> segments_;
};

}  // namespace assay::symbols
