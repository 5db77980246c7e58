// The profiler's options and columns.
//
// Also the summary at the end of a run.
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

// Columns: references, misses of caches of each of the sizes, and lines that are new.
enum Event : std::uint32_t { kReferences, kMisses, kNew = kMisses + kSizes, kEvents };

constexpr std::uint32_t misses_at(unsigned shift) {
    return kMisses + shift - kSmallestShift;
}

struct Settings {
    std::uint32_t line = 64;                       // bytes, a power of two
    std::vector<unsigned> shifts{15, 18, 21, 24};  // logarithms of the sizes, ascending
    std::string miss_curve;                        // a file; empty: none
};

inline constexpr std::array<vp_option_t, 3> kOptionTable{{
    {"sizes", "SIZE,...", "32K,256K,2M,16M",
     "Capacities that have a column of misses: powers of two from 1K to 1G.", VP_OPTION_TEXT, 0},
    {"line-size", "BYTES", "64", "Bytes of a line.", VP_OPTION_UNSIGNED, 0},
    {"miss-curve", "FILE", nullptr,
     "Writes the misses of caches of all sizes, and a histogram of reuse times, as CSV.",
     VP_OPTION_OUTPUT_FILE, 0},
}};

// Takes one option over. Throws std::invalid_argument with the reason if its value is unusable.
void apply(Settings& settings, std::string_view name, std::string_view value);
// Likewise, once all are known.
void check(const Settings& settings);

// "32K", "1M": as the options and the columns say it.
std::string size_name(std::uint64_t bytes);

// What the histograms say: the miss curve, and a text for people.

// Misses of a fully associative LRU cache of so many lines.
struct CurvePoint {
    std::uint64_t lines, misses;
};

// The curve at sizes of 1 line and upwards, `parts` of them (a power of two) for each power of two
// as far as they differ, up to the first that holds everything: there, only new lines miss.
std::vector<CurvePoint> miss_curve(const Histograms& histograms, std::uint32_t parts);

// How many references came so long after the one before to their line.
struct AgePoint {
    std::uint64_t least, references;  // `least` to twice as many references, without that
};
std::vector<AgePoint> reuse_times(const Histograms& histograms);

// Sizes and miss ratios, of `references`, which there were in all.
std::string summarise(const Histograms& histograms, std::uint64_t references, std::uint64_t lines,
                      std::uint32_t line_bytes);

// The curve for the events file, with as many points as in csv().
assay::Series series(const Histograms& histograms, std::uint32_t line_bytes);

// The same as CSV: lines of `miss curve,BYTES,MISSES`, 16 sizes for each power of two, and of
// `reuse time,REFERENCES,COUNT`, for times from so many references on to twice as many.
std::string csv(const Histograms& histograms, std::uint32_t line_bytes);

}  // namespace reuse
