#include "tools/report/block_vectors.h"

#include "framework/events/block_vectors.h"
#include "framework/events/file.h"
#include "framework/events/lexical.h"
#include "framework/support/error.h"
#include "tools/block_vectors/simulation_points.h"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace assay::report {

namespace {

// Limits the time: each interval is compared with each point.
constexpr std::size_t kMostPoints = 10'000;
constexpr std::size_t kMostLineBytes = 4096;  // in files of points and weights

using Vector =
    std::vector<std::pair<std::uint32_t, double>>;  // block and its share, sorted by block

// Calls `function` for each line of a file with its number.
void for_each_line(const std::string& path,
                   const std::function<void(std::string_view, std::size_t)>& function) {
    std::string partial;
    std::size_t number = 0;
    events::read_file(path, [&](std::string_view block) {
        for (std::size_t end = block.find('\n'); end != std::string_view::npos;
             end = block.find('\n')) {
            partial += block.substr(0, end);
            function(partial, ++number);
            partial.clear();
            block.remove_prefix(end + 1);
        }
        partial += block;
        if (partial.size() > kMostLineBytes)
            throw Error(fmt::format("{}:{}: the line is longer than {} bytes", path, number + 1,
                                    kMostLineBytes));
    });
    if (!partial.empty()) function(partial, ++number);
}

template <typename Number>
Number take_number(std::string_view& text, const std::string& path, std::size_t line) {
    text = events::skip_blanks(text);
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc())
        throw Error(
            fmt::format("{}:{}: expected a number ({})", path, line, events::excerpt(text)));
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

double distance(const Vector& a, const Vector& b) {
    double sum = 0;
    auto x = a.begin(), y = b.begin();
    while (x != a.end() || y != b.end()) {
        if (y == b.end() || (x != a.end() && x->first < y->first)) {
            sum += x++->second;
        } else if (x == a.end() || y->first < x->first) {
            sum += y++->second;
        } else {
            sum += std::abs(x++->second - y++->second);
        }
    }
    return sum;
}

std::vector<SimulationPoint> read_points(const std::string& path, std::size_t intervals) {
    std::vector<SimulationPoint> points;
    if (path.empty()) return points;
    for_each_line(path, [&](std::string_view text, std::size_t line) {
        if (events::skip_blanks(text).empty()) return;
        const auto interval = take_number<std::uint32_t>(text, path, line);
        const auto cluster = take_number<std::uint32_t>(text, path, line);
        if (interval >= intervals)
            throw Error(fmt::format("{}:{}: there are {} block vectors, counted from 0 ({})", path,
                                    line, intervals, interval));
        if (points.size() == kMostPoints)
            throw Error(
                fmt::format("{}: more than {} points; choose fewer, see assay simpoint --maxK",
                            path, kMostPoints));
        points.push_back({interval, cluster, 0});
    });
    return points;
}

void read_weights(const std::string& path, std::vector<SimulationPoint>& points) {
    for_each_line(path, [&](std::string_view text, std::size_t line) {
        if (events::skip_blanks(text).empty()) return;
        const auto weight = take_number<double>(text, path, line);
        const auto cluster = take_number<std::uint32_t>(text, path, line);
        for (SimulationPoint& point : points)
            if (point.cluster == cluster) point.weight = weight;
    });
}

// Checks labels by the intervals of the points, because each choice of points numbers the clusters
// anew.
std::vector<std::uint32_t> read_labels(const std::string& path,
                                       const std::vector<SimulationPoint>& points,
                                       std::size_t intervals) {
    std::vector<std::uint32_t> phases;
    for_each_line(path, [&](std::string_view text, std::size_t line) {
        if (events::skip_blanks(text).empty()) return;
        const auto cluster = take_number<std::uint32_t>(text, path, line);
        const auto point = std::find_if(points.begin(), points.end(),
                                        [&](const auto& each) { return each.cluster == cluster; });
        phases.push_back(static_cast<std::uint32_t>(point - points.begin()));
    });
    const char* const kRemedy = "write all files again with assay simpoint";
    if (phases.size() != intervals)
        throw Error(fmt::format("{}: labels of {} intervals, but there are {} block vectors: {}",
                                path, phases.size(), intervals, kRemedy));
    for (std::size_t i = 0; i < points.size(); ++i)
        if (phases[points[i].interval] != i)
            throw Error(fmt::format("{}: interval {} is not in phase {}, which it represents: {}",
                                    path, points[i].interval, points[i].cluster, kRemedy));
    return phases;
}

std::uint32_t nearest_point(const Vector& vector, const std::vector<Vector>& vectors,
                            const std::vector<SimulationPoint>& points) {
    std::uint32_t nearest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t i = 0; i < points.size(); ++i) {
        const double far = distance(vector, vectors[points[i].interval]);
        if (far < least) {
            least = far;
            nearest = i;
        }
    }
    return nearest;
}

// Returns the vector of each interval. Stores the number of its instructions.
std::vector<Vector> read_vectors(const std::string& path,
                                 std::vector<std::uint64_t>& instructions) {
    std::vector<Vector> vectors;
    Vector vector;
    std::uint64_t total = 0;
    events::BlockVectorParser parser(
        path, {.pair =
                   [&](std::uint32_t block, std::uint64_t count) {
                       vector.emplace_back(block, static_cast<double>(count));
                       total += count;
                   },
               .end =
                   [&] {
                       if (vectors.size() == kMostIntervals)
                           throw Error(
                               fmt::format("{}: more than {} intervals; choose a longer "
                                           "--interval-size",
                                           path, kMostIntervals));
                       std::sort(vector.begin(), vector.end());
                       for (auto& [block, share] : vector)
                           share /= static_cast<double>(std::max<std::uint64_t>(1, total));
                       vectors.push_back(std::exchange(vector, {}));
                       instructions.push_back(std::exchange(total, 0));
                   }});
    events::read_file(path, [&](std::string_view block) { parser.feed(block); });
    parser.finish();
    return vectors;
}

// Computes weights as assay simpoint does: shares of the intervals in phases with a point.
void compute_weights(Phases& phases) {
    double all = 0;
    for (std::size_t i = 0; i < phases.phases.size(); ++i) {
        if (phases.phases[i] == phases.points.size()) continue;
        const auto instructions = static_cast<double>(phases.instructions[i]);
        phases.points[phases.phases[i]].weight += instructions;
        all += instructions;
    }
    if (all == 0) return;
    for (SimulationPoint& point : phases.points) point.weight /= all;
}

}  // namespace

Phases read_phases(const std::string& vectors_path, const std::string& points_path,
                   const std::string& weights_path, const std::string& labels_path) {
    Phases phases;
    const std::vector<Vector> vectors = read_vectors(vectors_path, phases.instructions);
    if (vectors.empty()) throw Error(fmt::format("{} has no intervals", vectors_path));
    phases.points = read_points(points_path, vectors.size());
    if (phases.points.empty()) return phases;
    phases.labelled = !labels_path.empty();
    if (phases.labelled)
        phases.phases = read_labels(labels_path, phases.points, vectors.size());
    else
        for (const Vector& vector : vectors)
            phases.phases.push_back(nearest_point(vector, vectors, phases.points));
    compute_weights(phases);
    if (!weights_path.empty()) read_weights(weights_path, phases.points);
    return phases;
}

}  // namespace assay::report
