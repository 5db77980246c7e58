// The profiler's options and columns, and the summary at the end of a run.
#pragma once

#include "assay/vprofiler.h"
#include "plugins/reuse/stack.h"

#include <array>
#include <assay/series.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reuse {

// Sizes that can have a column: powers of two, from 1 KiB to 1 GiB.
inline constexpr unsigned kSmallestShift = 10, kLargestShift = 30;
inline constexpr unsigned kSizes = kLargestShift - kSmallestShift + 1;

// Columns: references, misses of caches of each size, and references to new lines.
enum Event : std::uint32_t { kReferences, kMisses, kNew = kMisses + kSizes, kEvents };

constexpr std::uint32_t misses_at(unsigned shift) {
    return kMisses + shift - kSmallestShift;
}

struct Settings {
    std::uint32_t line = 64;                       // bytes, a power of two
    std::vector<unsigned> shifts{15, 18, 21, 24};  // logarithms of the sizes, ascending
    std::string miss_curve;                        // a file; empty: no curve
};

inline constexpr std::array<vp_option_t, 3> kOptionTable{{
    {"sizes", "SIZE,...", "32K,256K,2M,16M",
     "Capacities of caches whose misses have a column: powers of two from 1K to 1G.",
     VP_OPTION_TEXT, 0},
    {"line-size", "BYTES", "64", "Bytes of a line.", VP_OPTION_UNSIGNED, 0},
    {"miss-curve", "FILE", nullptr,
     "Writes the misses of caches of all sizes, and a histogram of reuse times, as CSV.",
     VP_OPTION_OUTPUT_FILE, 0},
}};

// Applies one option. Throws std::invalid_argument with the reason if its value is unusable.
void apply(Settings& settings, std::string_view name, std::string_view value);
// Checks all options together. Throws std::invalid_argument with the reason.
void check(const Settings& settings);

// "32K", "1M": the form of options and columns.
std::string size_name(std::uint64_t bytes);

// Results of the histograms: the miss curve, and a summary for people.

// The misses of a fully associative LRU cache of `lines` lines.
struct CurvePoint {
    std::uint64_t lines, misses;
};

// The curve from 1 line up to the first size that holds all lines and where only new lines miss. It
// has up to `parts` sizes, a power of two, for each doubling.
std::vector<CurvePoint> miss_curve(const Histograms& histograms, std::uint32_t parts);

// The number of references by the time since the last reference to the same line.
struct AgePoint {
    std::uint64_t least, references;  // times from `least` to less than twice as many references
};
std::vector<AgePoint> reuse_times(const Histograms& histograms);

// A table of sizes and miss ratios. `references` is the number of all references.
std::string summarise(const Histograms& histograms, std::uint64_t references, std::uint64_t lines,
                      std::uint32_t line_bytes);

// The curve for the events file, with as many points as csv() gives.
assay::Series series(const Histograms& histograms, std::uint32_t line_bytes);

// The curve as CSV: lines `miss curve,BYTES,MISSES`, 16 sizes for each power of two, and lines
// `reuse time,REFERENCES,COUNT` for times from REFERENCES to less than twice as many.
std::string csv(const Histograms& histograms, std::uint32_t line_bytes);

}  // namespace reuse
