// The most frequent values of an instruction, as a summary of bounded size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::events {

struct HotValue {
    std::uint64_t value;
    std::uint64_t count;  // at least 1
    bool operator==(const HotValue&) const = default;
};

// A listed value was seen at least `count` times and at most `error` times more; any other value
// at most `error` times. With an `error` of 0 the list is complete and exact.
struct Hotlist {
    // The name of the profiler; and, if it keeps several lists for an instruction, a point and the
    // name of this one.
    std::string name;
    std::uint64_t total = 0;  // values seen: no less than the sum of the counts
    std::uint64_t error = 0;
    std::vector<HotValue> values;  // distinct, sorted: see sort_by_count()
    bool operator==(const Hotlist&) const = default;
};

// The most frequent first, among equally frequent ones the lowest.
void sort_by_count(std::vector<HotValue>& values);

// Adds what another run, or another copy of the code, has seen, and keeps the `most` most frequent
// values. The errors add up, and with them the count of the most frequent value that is dropped
// (Agarwal et al., "Mergeable summaries", PODS 2012). Throws Error if the total exceeds 64 bits.
void merge(Hotlist& into, const Hotlist& other, std::size_t most);

// Describes what is wrong with a list; nullptr if nothing is.
const char* defect(const Hotlist& list);

}  // namespace assay::events
