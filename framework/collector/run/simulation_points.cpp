#include "framework/collector/run/simulation_points.h"

#include "framework/events/file.h"
#include "framework/events/lexical.h"
#include "framework/support/error.h"
#include "framework/trace/segment_layout.h"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>

namespace assay::collector {
namespace {

constexpr std::size_t kMostLineBytes = 4096;
// SimPoint rounds each weight to six digits.
constexpr double kTolerance = 0.01;
constexpr std::uint64_t kMostInstructions = std::uint64_t{1} << 60;

struct Place {
    const std::string& path;
    std::size_t line;
};

[[noreturn]] void refuse(const Place& place, const std::string& why) {
    throw Error(fmt::format("{}:{}: {}", place.path, place.line, why));
}

void for_each_line(const std::string& path,
                   const std::function<void(std::string_view, const Place&)>& function) {
    std::string text;
    events::read_file(path, [&](std::string_view block) { text += block; });
    std::size_t number = 0;
    for (std::string_view left = text; !left.empty();) {
        const std::size_t end = std::min(left.find('\n'), left.size());
        const Place place{path, ++number};
        if (end > kMostLineBytes)
            refuse(place, fmt::format("the line is longer than {} bytes", kMostLineBytes));
        if (!events::skip_blanks(left.substr(0, end)).empty()) function(left.substr(0, end), place);
        left.remove_prefix(std::min(end + 1, left.size()));
    }
}

template <typename Number>
Number take_number(std::string_view& text, const Place& place, const char* what) {
    text = events::skip_blanks(text);
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc())
        refuse(place, fmt::format("expected {} ({})", what, events::excerpt(text)));
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

void expect_end(std::string_view text, const Place& place) {
    text = events::skip_blanks(text);
    if (!text.empty() && text != "\r")
        refuse(place, fmt::format("expected the line's end ({})", events::excerpt(text)));
}

std::map<std::uint64_t, double> read_weights(const std::string& path) {
    std::map<std::uint64_t, double> weights;
    double sum = 0;
    for_each_line(path, [&](std::string_view text, const Place& place) {
        const auto weight = take_number<double>(text, place, "a weight");
        const auto cluster = take_number<std::uint64_t>(text, place, "a cluster");
        expect_end(text, place);
        if (!(weight >= 0 && weight <= 1 + kTolerance))
            refuse(place, fmt::format("the weight {} is not from 0 to 1", weight));
        if (!weights.emplace(cluster, weight).second)
            refuse(place, fmt::format("cluster {} has a weight already", cluster));
        sum += weight;
    });
    if (std::abs(sum - 1) > kTolerance)
        throw Error(
            fmt::format("{}: the weights add up to {:.6g}, not to 1: write it again with assay "
                        "simpoint",
                        path, sum));
    return weights;
}

// An interval ends with the instruction at which the number of executed instructions exceeds a
// multiple of the size (docs/reference/profilers/bbv.md).
trace_point_t point_of(std::uint64_t interval, std::uint64_t size) {
    const std::uint64_t begin = interval * size;
    return {.begin = begin == 0 ? 0 : begin + 1,
            .end = begin + size + 1,
            .number = interval,
            .weight = 0,
            .cluster = 0};
}

}  // namespace

SimulationPoints read_simulation_points(const std::string& points, const std::string& weights,
                                        std::uint64_t interval_size, std::uint64_t warm_up) {
    SimulationPoints read{.interval_size = interval_size, .warm_up = warm_up, .points = {}};
    std::map<std::uint64_t, double> left = read_weights(weights);
    for_each_line(points, [&](std::string_view text, const Place& place) {
        const auto interval = take_number<std::uint64_t>(text, place, "an interval");
        const auto cluster = take_number<std::uint64_t>(text, place, "a cluster");
        expect_end(text, place);
        if (interval >= kMostInstructions / interval_size)
            refuse(place, fmt::format("the interval {} of {} instructions is too late", interval,
                                      interval_size));
        const auto weight = left.find(cluster);
        if (weight == left.end())
            refuse(place, fmt::format("cluster {} has no weight of its own in {}: give two files "
                                      "that were written together",
                                      cluster, weights));
        read.points.push_back(point_of(interval, interval_size));
        read.points.back().weight = weight->second;
        read.points.back().cluster = cluster;
        left.erase(weight);
        if (read.points.size() > trace::kMostPoints)
            refuse(place, fmt::format("more than {} intervals: choose fewer, see assay simpoint "
                                      "--maxK",
                                      trace::kMostPoints));
    });
    if (read.points.empty()) throw Error(fmt::format("{}: there are no intervals in it", points));
    if (!left.empty())
        throw Error(
            fmt::format("{}: cluster {} of {} has no interval: give two files that were "
                        "written together",
                        points, left.begin()->first, weights));
    std::sort(read.points.begin(), read.points.end(),
              [](const trace_point_t& a, const trace_point_t& b) { return a.number < b.number; });
    const auto twice = std::adjacent_find(
        read.points.begin(), read.points.end(),
        [](const trace_point_t& a, const trace_point_t& b) { return a.number == b.number; });
    if (twice != read.points.end())
        throw Error(fmt::format("{}: interval {} stands for two clusters", points, twice->number));
    return read;
}

std::vector<std::uint64_t> shares(const std::vector<trace_point_t>& points,
                                  std::uint64_t instructions) {
    double sum = 0;
    for (const trace_point_t& point : points) sum += point.weight;
    std::vector<std::uint64_t> shares;
    double weights = 0;
    std::uint64_t before = 0;
    for (const trace_point_t& point : points) {
        weights += point.weight;
        const double part = sum > 0 ? weights / sum * static_cast<double>(instructions) : 0;
        const bool last = &point == &points.back();
        const auto up_to_here = std::min(
            last ? instructions : static_cast<std::uint64_t>(std::llround(part)), instructions);
        shares.push_back(up_to_here - before);
        before = up_to_here;
    }
    return shares;
}

}  // namespace assay::collector
