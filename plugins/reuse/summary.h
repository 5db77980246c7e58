// What the histograms say: the miss curve, and a text for people.
#pragma once

#include "plugins/reuse/stack.h"

#include <assay/series.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace reuse {

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
