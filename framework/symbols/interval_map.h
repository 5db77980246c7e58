// Which of many address ranges an address belongs to, when ranges nest or overlap: the one that
// starts last. Used for ELF symbols, compilation units, and functions with what is inlined in
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay::symbols {

using Address = std::uint64_t;

// Whether the sorted `addresses` have one in [low, high).
bool any_within(std::span<const Address> addresses, Address low, Address high);

class IntervalMap {
  public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    // Adds [low, high) with a value of the caller's. Of ranges with the same start the shorter
    // one wins where they overlap, of equal ranges the one added last.
    void add(Address low, Address high, std::uint32_t value);
    // To be called once, after the last add() and before the first find().
    void seal();
    // The value of the range that `address` belongs to, or kNone.
    std::uint32_t find(Address address) const;
    // Those of `addresses`, which are sorted.
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
