#include "plugins/reuse/settings.h"

#include "plugins/common/geometry.h"

#include <algorithm>
#include <assay/profiler.hpp>
#include <assay/text.hpp>
#include <bit>
#include <numeric>

namespace reuse {
namespace {

std::vector<unsigned> shifts_of(std::string_view name, std::string_view value) {
    std::vector<unsigned> shifts;
    std::string_view rest = value;
    for (bool more = true; more;) {
        const std::size_t comma = rest.find(',');
        const std::string_view word = rest.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) rest.remove_prefix(comma + 1);
        std::uint64_t bytes = 0;
        if (!cache::parse_size(word, bytes) || !std::has_single_bit(bytes) ||
            bytes >> kSmallestShift == 0 || bytes >> kLargestShift > 1)
            throw assay::BadOption(name, value,
                                   "use powers of two from 1K to 1G, separated by commas, such as "
                                   "32K,1M");
        shifts.push_back(static_cast<unsigned>(std::countr_zero(bytes)));
    }
    std::sort(shifts.begin(), shifts.end());
    shifts.erase(std::unique(shifts.begin(), shifts.end()), shifts.end());
    return shifts;
}

}  // namespace

void apply(Settings& settings, std::string_view name, std::string_view value) {
    if (name == "sizes") {
        settings.shifts = shifts_of(name, value);
        return;
    }
    if (name == "miss-curve") {
        settings.miss_curve = value;
        return;
    }
    const std::uint64_t line =
        assay::number(name, value, cache::kSmallestLine, cache::kLargestLine);
    if (!std::has_single_bit(line)) throw assay::BadOption(name, value, "use a power of two");
    settings.line = static_cast<std::uint32_t>(line);
}

void check(const Settings& settings) {
    const std::uint64_t smallest = std::uint64_t{1} << settings.shifts.front();
    if (smallest < settings.line)
        throw assay::BadOption("sizes", size_name(smallest),
                               "less than a line, --line-size=" + std::to_string(settings.line));
}

std::string size_name(std::uint64_t bytes) {
    for (const auto& [shift, unit] : {std::pair{30, "G"}, {20, "M"}, {10, "K"}})
        if (bytes >> shift != 0 && bytes % (std::uint64_t{1} << shift) == 0)
            return std::to_string(bytes >> shift) + unit;
    return std::to_string(bytes);
}

namespace {

constexpr std::uint32_t kPoints = 16;  // sizes written for each power of two

}  // namespace

std::vector<CurvePoint> miss_curve(const Histograms& histograms, std::uint32_t parts) {
    std::vector<std::uint64_t> distances = histograms.distances;
    if (distances.size() < kNearDistances) distances.resize(kNearDistances);
    for (std::size_t i = 0; i < histograms.near.size(); ++i)
        distances[i / kCopies % kNearDistances] += histograms.near[i];
    // References at distance 0 hit in every cache, and not all of them are counted.
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
