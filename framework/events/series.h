// Series of an events file (docs/reference/events-file.md): curves, such as the misses of caches by
// their size, or the bytes in use during a run. Also lists of the most frequent values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::events {

// Limits of a file. They bound the memory that a reader spends on a hostile one: 19 MB of numbers.
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
    std::uint32_t thread = 0;  // in the order of creation, from 1; 0: all threads
    std::string phase;         // of the program; may be empty
    std::string from;          // the input file of this series, if the files that were added up had
                               // different ones; may be empty
    bool log_x = false;        // show x on a logarithmic scale
    bool adds = false;         // see add()
    std::uint64_t each = 1;    // number of recorded points that were combined into one
    Axis x;
    std::vector<Axis> columns;           // 1 to kMostSeriesColumns
    std::vector<std::uint64_t> numbers;  // for each point its x, then one number for each column

    std::size_t width() const { return 1 + columns.size(); }
    std::size_t points() const { return numbers.size() / width(); }
    std::uint64_t x_of(std::size_t point) const { return numbers[point * width()]; }
    std::uint64_t y_of(std::size_t point, std::size_t column) const {
        return numbers[point * width() + 1 + column];
    }
    bool operator==(const Series&) const = default;
};

// Describes a defect of the series; nullptr if it is correct. Points are in ascending order of x,
// all different.
const char* defect(const Series& series);

// The number of neighbouring points that are combined into one so that at most kMostSeriesPoints
// remain. A power of two, so that series of different lengths can be compared. At least 1.
std::uint64_t neighbours_of_one(std::uint64_t points);

// Adds another file's numbers at the same x. The series must both add up and have the same axes,
// and the x of one must be the first x of the other. After its last point, a curve keeps its last
// value. Returns false and changes nothing if the two must be kept side by side. Throws Error if a
// number exceeds 64 bits.
bool add(Series& into, const Series& other);

struct HotValue {
    std::uint64_t value;
    std::uint64_t count;  // at least 1
    bool operator==(const HotValue&) const = default;
};

// The most frequent values of an instruction, in bounded space. A listed value was seen at least
// `count` and at most `count` + `error` times, any other value at most `error` times. If `error` is
// 0, the list is complete and exact.
struct Hotlist {
    // The name of the profiler, followed by a point and the list's own name if the profiler keeps
    // several lists for an instruction.
    std::string name;
    std::uint64_t total = 0;  // number of values seen: at least the sum of the counts
    std::uint64_t error = 0;
    std::vector<HotValue> values;  // distinct, sorted: see sort_by_count()
    bool operator==(const Hotlist&) const = default;
};

// The most frequent value first; among equally frequent ones, the lowest.
void sort_by_count(std::vector<HotValue>& values);

// Adds the values of another run, or of another copy of the code, and keeps the `most` most
// frequent ones. The errors add up, and the count of the most frequent dropped value is added to
// them (Agarwal et al., "Mergeable summaries", PODS 2012). Throws Error if the total exceeds 64
// bits.
void merge(Hotlist& into, const Hotlist& other, std::size_t most);

// Describes a defect of the list; nullptr if it is correct.
const char* defect(const Hotlist& list);

}  // namespace assay::events
