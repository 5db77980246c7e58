#include "framework/symbols/interval_map.h"

#include <algorithm>

namespace assay::symbols {

bool any_within(std::span<const Address> addresses, Address low, Address high) {
    auto first = std::lower_bound(addresses.begin(), addresses.end(), low);
    return first != addresses.end() && *first < high;
}

void IntervalMap::add(Address low, Address high, std::uint32_t value) {
    if (low < high) intervals_.push_back({low, high, value});
}

void IntervalMap::begin_segment(Address start, std::uint32_t value) {
    if (!segments_.empty() && segments_.back().start == start) {
        segments_.back().value = value;
    } else {
        segments_.push_back({start, value});
    }
}

// Ends the open ranges that do not reach beyond `address`. The range below an ended one becomes
// visible again, unless it ended earlier.
void IntervalMap::close_until(Address address, std::vector<Interval>& open) {
    while (!open.empty() && open.back().high <= address) {
        Address end = open.back().high;
        while (!open.empty() && open.back().high <= end) open.pop_back();
        begin_segment(end, open.empty() ? kNone : open.back().value);
    }
}

void IntervalMap::seal() {
    std::stable_sort(intervals_.begin(), intervals_.end(),
                     [](const Interval& a, const Interval& b) {
                         return a.low != b.low ? a.low < b.low : a.high > b.high;
                     });
    std::vector<Interval> open;
    for (const Interval& interval : intervals_) {
        close_until(interval.low, open);
        open.push_back(interval);
        begin_segment(interval.low, interval.value);
    }
    close_until(UINT64_MAX, open);
    intervals_ = {};
}

std::uint32_t IntervalMap::find(Address address) const {
    auto next = std::upper_bound(segments_.begin(), segments_.end(), address,
                                 [](Address a, const Segment& s) { return a < s.start; });
    return next == segments_.begin() ? kNone : std::prev(next)->value;
}

std::vector<std::uint32_t> IntervalMap::find_all(std::span<const Address> addresses) const {
    std::vector<std::uint32_t> values;
    values.reserve(addresses.size());
    auto next = segments_.begin();
    std::uint32_t value = kNone;
    for (const Address address : addresses) {
        for (; next != segments_.end() && next->start <= address; ++next) value = next->value;
        values.push_back(value);
    }
    return values;
}

}  // namespace assay::symbols
