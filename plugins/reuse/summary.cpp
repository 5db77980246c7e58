#include "plugins/reuse/summary.h"

#include "plugins/reuse/settings.h"

#include <assay/text.hpp>

#include <algorithm>
#include <bit>
#include <numeric>

namespace reuse {

namespace {

constexpr std::uint32_t kPoints = 16;  // for each power of two, of what is written

}  // namespace

std::vector<CurvePoint> miss_curve(const Histograms& histograms, std::uint32_t parts) {
    std::vector<std::uint64_t> distances = histograms.distances;
    if (distances.size() < kNearDistances) distances.resize(kNearDistances);
    for (std::size_t i = 0; i < histograms.near.size(); ++i)
        distances[i / kCopies % kNearDistances] += histograms.near[i];
    // Those at distance 0 are not all counted, and hit in every cache.
    std::uint64_t misses =
        std::accumulate(distances.begin() + 1, distances.end(), histograms.never);
    std::vector<CurvePoint> curve;
    std::uint64_t lines = 1;
    for (;;) {
        curve.push_back({lines, misses});
        if (misses == histograms.never) return curve;
        const std::uint64_t step = std::max<std::uint64_t>(1, std::bit_floor(lines) / parts);
        for (std::uint64_t i = 0; i < step; ++i, ++lines)
            if (lines < distances.size()) misses -= distances[lines];
    }
}

std::vector<AgePoint> reuse_times(const Histograms& histograms) {
    std::vector<std::uint64_t> by_bits = histograms.ages;
    for (std::size_t i = 0; i < histograms.near.size(); ++i)
        by_bits[i / kCopies / kNearDistances] += histograms.near[i];
    while (by_bits.size() > 1 && by_bits.back() == 0) by_bits.pop_back();
    std::vector<AgePoint> points;
    for (std::uint32_t bits = 1; bits < by_bits.size(); ++bits)
        points.push_back({std::uint64_t{1} << (bits - 1), by_bits[bits]});
    return points;
}

std::string summarise(const Histograms& histograms, std::uint64_t references, std::uint64_t lines,
                      std::uint32_t line_bytes) {
    using assay::percent;
    using assay::right;
    using assay::with_commas;
    const std::size_t width = std::max<std::size_t>(with_commas(references).size(), 6);
    std::string out = "references:   " + right(with_commas(references), width) + "\n";
    out += "lines:        " + right(with_commas(lines), width) + "  (" +
           size_name(lines * line_bytes) + "B)\n\n";
    out += "   LRU cache  " + right("misses", width) + "  of references\n";
    for (const CurvePoint& point : miss_curve(histograms, 1))
        out += right(size_name(point.lines * line_bytes) + "B", 12) + "  " +
               right(with_commas(point.misses), width) + "  " +
               right(percent(point.misses, references, 2), 13) + "\n";
    return out;
}

assay::Series series(const Histograms& histograms, std::uint32_t line_bytes) {
    assay::Series curve("miss curve", {"cache size", "bytes"}, {{"misses", "misses"}},
                        "misses of fully associative LRU caches, by their size");
    curve.on_log_scale().adds_up();
    for (const CurvePoint& point : miss_curve(histograms, kPoints))
        curve.point({point.lines * line_bytes, point.misses});
    return curve;
}

std::string csv(const Histograms& histograms, std::uint32_t line_bytes) {
    std::string out = "series,x,y\n";
    for (const CurvePoint& point : miss_curve(histograms, kPoints))
        out += "miss curve," + std::to_string(point.lines * line_bytes) + "," +
               std::to_string(point.misses) + "\n";
    for (const AgePoint& point : reuse_times(histograms))
        out += "reuse time," + std::to_string(point.least) + "," +
               std::to_string(point.references) + "\n";
    return out;
}

}  // namespace reuse
