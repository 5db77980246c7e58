#include "framework/events/hotlist.h"

#include "framework/support/error.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace assay::events {

namespace {

bool by_value(const HotValue& a, const HotValue& b) {
    return a.value < b.value;
}

// Puts the counts of equal values together.
void unite(std::vector<HotValue>& values) {
    std::sort(values.begin(), values.end(), by_value);
    std::size_t kept = 0;
    for (const HotValue& each : values) {
        if (kept > 0 && values[kept - 1].value == each.value)
            values[kept - 1].count += each.count;
        else
            values[kept++] = each;
    }
    values.resize(kept);
}

}  // namespace

void sort_by_count(std::vector<HotValue>& values) {
    std::sort(values.begin(), values.end(), [](const HotValue& a, const HotValue& b) {
        return std::tie(b.count, a.value) < std::tie(a.count, b.value);
    });
}

void merge(Hotlist& into, const Hotlist& other, std::size_t most) {
    if (__builtin_add_overflow(into.total, other.total, &into.total))
        throw Error("the total of values of " + into.name + " exceeds 64 bits");
    into.error += other.error;
    into.values.insert(into.values.end(), other.values.begin(), other.values.end());
    unite(into.values);
    sort_by_count(into.values);
    if (into.values.size() <= most) return;
    into.error = std::min(into.error + into.values[most].count, into.total);
    into.values.resize(most);
}

const char* defect(const Hotlist& list) {
    if (list.error > list.total) return "the error exceeds the total";
    std::uint64_t sum = 0, before = std::numeric_limits<std::uint64_t>::max();
    for (const HotValue& each : list.values) {
        if (each.count == 0) return "a value was never seen";
        if (each.count > before) return "the values are not sorted by their counts";
        before = each.count;
        if (__builtin_add_overflow(sum, each.count, &sum) || sum > list.total)
            return "the counts exceed the total";
    }
    std::vector<HotValue> sorted = list.values;
    std::sort(sorted.begin(), sorted.end(), by_value);
    const auto twice =
        std::adjacent_find(sorted.begin(), sorted.end(),
                           [](const HotValue& a, const HotValue& b) { return a.value == b.value; });
    return twice == sorted.end() ? nullptr : "a value occurs twice";
}

}  // namespace assay::events
