// Series of an events file (docs/reference/events-file.md): curves, such as the misses of caches by
// their size, or what is in use as a run goes on.
//
// Also lists of the most frequent values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::events {

// Of a file. They bound what a reader keeps of a hostile one: 19 MB of numbers.
inline constexpr std::size_t kMostSeries = 256;
inline constexpr std::size_t kMostSeriesColumns = 8;
inline constexpr std::size_t kMostSeriesPoints = 1024;
inline constexpr std::size_t kMostSeriesText = 4096;  // bytes of a name, a unit, a description

struct Axis {
    std::string name;  // not empty
    std::string unit;  // plural noun; may be empty
    bool operator==(const Axis&) const = default;
};

struct Series {
    std::string name;  // not empty
    std::string description, profiler;
    std::uint32_t thread = 0;  // from 1 in the order of creation; 0: it is of all threads
    std::string phase;         // of the program; may be empty
    std::string from;          // the file that it comes from, if it was not alike in all that are
                               // added up; may be empty
    bool log_x = false;        // x is to be shown on a logarithmic scale
    bool adds = false;         // see add()
    std::uint64_t each = 1;    // of how many points one was made
    Axis x;
    std::vector<Axis> columns;           // 1 to kMostSeriesColumns
    std::vector<std::uint64_t> numbers;  // by point: its x, then one of each column

    std::size_t width() const { return 1 + columns.size(); }
    std::size_t points() const { return numbers.size() / width(); }
    std::uint64_t x_of(std::size_t point) const { return numbers[point * width()]; }
    std::uint64_t y_of(std::size_t point, std::size_t column) const {
        return numbers[point * width() + 1 + column];
    }
    bool operator==(const Series&) const = default;
};

// Describes what is wrong with a series; nullptr if nothing is. Points are in the order of x, and
// no two have the same.
const char* defect(const Series& series);

// Of how many of `points` neighbours one is made so that at most kMostSeriesPoints are left: a
// power of two, so that series of different lengths can be compared. At least 1.
std::uint64_t neighbours_of_one(std::uint64_t points);

// Adds what another file has at the same x, if both add up and are about the same: the axes are the
// same, and the x of one are the first of the other's. Behind its last point a curve stays what it
// is there. False if they are to be kept side by side: then nothing is changed. Throws Error if a
// number exceeds 64 bits.
bool add(Series& into, const Series& other);

// The most frequent values of an instruction, as a summary of bounded size.

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
