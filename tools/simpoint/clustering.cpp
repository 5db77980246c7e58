#include "tools/simpoint/clustering.h"

#include "framework/events/block_vectors.h"
#include "framework/events/file.h"
#include "framework/support/error.h"
#include "tools/block_vectors/simulation_points.h"

#include <fmt/core.h>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <numbers>
#include <thread>
#include <utility>

namespace assay::simpoint {
namespace {

class Projector {
  public:
    Projector(std::string path, std::size_t dimensions, std::uint64_t seed)
        : path_(std::move(path)), seed_(seed), sum_(dimensions), row_(dimensions) {
        intervals_.points.dimensions = dimensions;
    }

    void add(std::uint32_t block, std::uint64_t count) {
        if (instructions_ + count < instructions_)
            throw Error(path_ + ": an interval of 2^64 instructions or more");
        instructions_ += count;
        intervals_.blocks = std::max<std::uint64_t>(intervals_.blocks, block);
        const std::span<const double> row = row_of(block);
        for (std::size_t d = 0; d < sum_.size(); ++d)
            sum_[d] += static_cast<double>(count) * row[d];
    }

    void end() {
        if (intervals_.instructions.size() == kMostIntervals)
            throw Error(
                fmt::format("{}: more than {} intervals; use longer ones", path_, kMostIntervals));
        // Intervals of different lengths count alike: only their composition matters.
        const double scale = instructions_ == 0 ? 0 : 1 / static_cast<double>(instructions_);
        for (double& sum : sum_) {
            intervals_.points.values.push_back(sum * scale);
            sum = 0;
        }
        intervals_.instructions.push_back(instructions_);
        instructions_ = 0;
    }

    Intervals take() { return std::move(intervals_); }

  private:
    // The block's row of the matrix, numbers from -1 to 1. It is computed, because block numbers
    // can be large.
    std::span<const double> row_of(std::uint32_t block) {
        constexpr std::uint32_t kRemembered = 1U << 20;
        if (block >= kRemembered) return make_row(block, row_);
        const std::size_t at = block * sum_.size();
        if (at >= rows_.size()) {
            rows_.resize(at + sum_.size());
            known_.resize(block + std::size_t{1});
        }
        const std::span<double> row(rows_.data() + at, sum_.size());
        if (known_[block]) return row;
        known_[block] = true;
        return make_row(block, row);
    }

    std::span<const double> make_row(std::uint32_t block, std::span<double> row) const {
        std::uint64_t state = seed_;
        state = splitmix64(state) ^ block;
        for (double& value : row) value = 2 * uniform(state) - 1;
        return row;
    }

    std::string path_;
    std::uint64_t seed_;
    Intervals intervals_;
    std::uint64_t instructions_ = 0;
    std::vector<double> sum_;
    std::vector<double> row_;   // of a block whose row is not kept
    std::vector<double> rows_;  // by block
    std::vector<bool> known_;
};

}  // namespace

Intervals read_intervals(const std::string& path, std::size_t dimensions, std::uint64_t seed) {
    Projector projector(path, dimensions, seed);
    events::BlockVectorParser parser(
        path, {[&](std::uint32_t block, std::uint64_t count) { projector.add(block, count); },
               [&] { projector.end(); }});
    events::read_file(path, [&](std::string_view block) { parser.feed(block); });
    parser.finish();
    Intervals intervals = projector.take();
    if (intervals.instructions.empty())
        throw Error(path +
                    ": no intervals, because the program ran for less than one; use a smaller "
                    "--interval-size with --plugin=bbv");
    return intervals;
}

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double squared_distance(std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (std::size_t d = 0; d < a.size(); ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
    return sum;
}

void add_center(Clustering& clustering, std::span<const double> point) {
    clustering.centers.values.insert(clustering.centers.values.end(), point.begin(), point.end());
}

// The first center is a random point. Each further center is a point that is chosen with a
// probability in proportion to its squared distance from the nearest center so far.
Clustering choose_centers(const Points& points, std::size_t k, std::uint64_t seed) {
    Clustering made;
    made.centers.dimensions = points.dimensions;
    std::uint64_t state = seed;
    std::vector<double> distances(points.count(), kInfinite);
    std::size_t chosen = splitmix64(state) % points.count();
    for (;;) {
        add_center(made, points[chosen]);
        if (made.centers.count() == k) return made;
        double sum = 0;
        for (std::size_t i = 0; i < points.count(); ++i) {
            distances[i] = std::min(distances[i], squared_distance(points[i], points[chosen]));
            sum += distances[i];
        }
        if (!(sum > 0)) return made;  // there are no more different points
        double left = uniform(state) * sum;
        for (std::size_t i = 0; i < points.count(); ++i) {
            if (distances[i] > 0) chosen = i;
            if ((left -= distances[i]) < 0) break;
        }
    }
}

// Assigns each point to the nearest center. Returns whether an assignment has changed.
bool assign(Clustering& clustering, const Points& points) {
    bool changed = false;
    clustering.distortion = 0;
    for (std::size_t i = 0; i < points.count(); ++i) {
        double least = kInfinite;
        std::uint32_t nearest = 0;
        for (std::uint32_t c = 0; c < clustering.centers.count(); ++c) {
            const double distance = squared_distance(points[i], clustering.centers[c]);
            if (distance >= least) continue;
            least = distance;
            nearest = c;
        }
        clustering.distortion += least;
        changed |= std::exchange(clustering.cluster[i], nearest) != nearest;
    }
    return changed;
}

std::vector<std::size_t> sizes(const Clustering& clustering) {
    std::vector<std::size_t> sizes(clustering.centers.count());
    for (const std::uint32_t cluster : clustering.cluster) ++sizes[cluster];
    return sizes;
}

// A center without points does not move.
void move_centers(Clustering& clustering, const Points& points) {
    const std::size_t dimensions = points.dimensions;
    const std::vector<std::size_t> members = sizes(clustering);
    for (std::size_t c = 0; c < members.size(); ++c)
        if (members[c] != 0)
            std::fill_n(
                clustering.centers.values.begin() + static_cast<std::ptrdiff_t>(c * dimensions),
                dimensions, 0);
    for (std::size_t i = 0; i < points.count(); ++i) {
        const std::size_t c = clustering.cluster[i];
        double* const center = clustering.centers.values.data() + c * dimensions;
        for (std::size_t d = 0; d < dimensions; ++d)
            center[d] += points[i][d] / static_cast<double>(members[c]);
    }
}

void remove_empty(Clustering& clustering) {
    const std::vector<std::size_t> members = sizes(clustering);
    std::vector<std::uint32_t> number(members.size());
    Clustering kept;
    kept.centers.dimensions = clustering.centers.dimensions;
    for (std::size_t c = 0; c < members.size(); ++c) {
        number[c] = static_cast<std::uint32_t>(kept.centers.count());
        if (members[c] != 0) add_center(kept, clustering.centers[c]);
    }
    clustering.centers = std::move(kept.centers);
    for (std::uint32_t& cluster : clustering.cluster) cluster = number[cluster];
}

// Numbers clusters in the order in which they first occur.
void renumber(Clustering& clustering) {
    constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> number(clustering.centers.count(), kNone);
    Clustering ordered;
    ordered.centers.dimensions = clustering.centers.dimensions;
    for (std::uint32_t& cluster : clustering.cluster) {
        if (number[cluster] == kNone) {
            number[cluster] = static_cast<std::uint32_t>(ordered.centers.count());
            add_center(ordered, clustering.centers[cluster]);
        }
        cluster = number[cluster];
    }
    clustering.centers = std::move(ordered.centers);
}

Clustering best_of_seeds(const Points& points, std::size_t k, const Search& search) {
    Clustering best;
    best.distortion = kInfinite;
    for (std::size_t i = 0; i < search.seeds; ++i) {
        std::uint64_t state = search.seed ^ (k << 32U | i);
        Clustering made = k_means(points, k, search.iterations, splitmix64(state));
        if (made.distortion < best.distortion) best = std::move(made);
    }
    best.score = bic(best, points);
    return best;
}

// Clusterings for each k from 1 up, on several threads.
std::vector<Clustering> all_sizes(const Points& points, const Search& search) {
    // As many clusters as points would leave nothing to estimate a variance from.
    const std::size_t most =
        std::max<std::size_t>(1, std::min(search.most_clusters, points.count() - 1));
    std::vector<Clustering> made(most);
    std::atomic<std::size_t> next = most;
    const auto work = [&] {
        for (std::size_t k = next--; k > 0 && k <= most; k = next--)
            made[k - 1] = best_of_seeds(points, k, search);
    };
    std::vector<std::future<void>> others;
    const std::size_t threads = std::min<std::size_t>(std::thread::hardware_concurrency(), most);
    for (std::size_t i = 1; i < threads; ++i)
        others.push_back(std::async(std::launch::async, work));
    work();
    for (std::future<void>& other : others) other.get();
    return made;
}

Points sample_of(const Points& points, std::size_t most) {
    if (points.count() <= most) return points;
    Points sample{points.dimensions, {}};
    for (std::size_t i = 0; i < most; ++i) {
        const auto point = points[i * points.count() / most];
        sample.values.insert(sample.values.end(), point.begin(), point.end());
    }
    return sample;
}

}  // namespace

Clustering k_means(const Points& points, std::size_t k, std::size_t iterations,
                   std::uint64_t seed) {
    Clustering clustering = choose_centers(points, k, seed);
    clustering.cluster.assign(points.count(), 0);
    assign(clustering, points);
    for (std::size_t i = 0; i < iterations; ++i) {
        move_centers(clustering, points);
        if (!assign(clustering, points)) break;
    }
    remove_empty(clustering);
    return clustering;
}

double bic(const Clustering& clustering, const Points& points) {
    const auto count = static_cast<double>(points.count());
    const auto dimensions = static_cast<double>(points.dimensions);
    const auto k = static_cast<double>(clustering.centers.count());
    // Intervals that differ in such a small part of their instructions belong to one phase.
    // Intervals end at a count of instructions, so some contain a few instructions of the next
    // phase or of the code between two phases. If there were no bound, each of them would be its
    // own phase, and points that equal their centers would have an infinite likelihood. In one
    // dimension of the projection, the variance of the difference is this part times the variance
    // between two elements of the matrix, 2 / 3.
    constexpr double kOnePhase = 0.01;
    constexpr double kLeastVariance = kOnePhase * kOnePhase * 2 / 3;
    const double freedom = std::max(1.0, count - k) * dimensions;
    const double variance = std::max(kLeastVariance, clustering.distortion / freedom);
    double likelihood = -count * dimensions / 2 * std::log(2 * std::numbers::pi * variance) -
                        clustering.distortion / (2 * variance);
    for (const std::size_t size : sizes(clustering)) {
        const auto members = static_cast<double>(size);
        likelihood += members * std::log(members / count);
    }
    const double parameters = (k - 1) + k * dimensions + 1;
    return likelihood - parameters / 2 * std::log(count);
}

Clustering find_phases(const Points& points, const Search& search) {
    const Points sample = sample_of(points, search.most_points);
    Clustering found;
    if (search.clusters != 0) {
        found = best_of_seeds(sample, std::min(search.clusters, sample.count()), search);
    } else {
        const std::vector<Clustering> sizes = all_sizes(sample, search);
        const auto by_score = [](const Clustering& a, const Clustering& b) {
            return a.score < b.score;
        };
        const auto [lowest, highest] = std::minmax_element(sizes.begin(), sizes.end(), by_score);
        // Rounding can push the result above the highest score.
        const double range = highest->score - lowest->score;
        const double wanted = std::min(lowest->score + search.threshold * range, highest->score);
        found = *std::find_if(sizes.begin(), sizes.end(),
                              [&](const Clustering& one) { return one.score >= wanted; });
    }
    found.cluster.assign(points.count(), 0);
    assign(found, points);
    remove_empty(found);
    found.score = bic(found, points);
    renumber(found);
    return found;
}

std::vector<std::size_t> representatives(const Clustering& clustering, const Points& points) {
    std::vector<std::size_t> found(clustering.centers.count());
    std::vector<double> least(found.size(), kInfinite);
    for (std::size_t i = 0; i < points.count(); ++i) {
        const std::uint32_t c = clustering.cluster[i];
        const double distance = squared_distance(points[i], clustering.centers[c]);
        if (distance >= least[c]) continue;
        least[c] = distance;
        found[c] = i;
    }
    return found;
}

double explained_variance(const Clustering& clustering, const Points& points) {
    if (points.count() == 0) return 1;
    const double total = k_means(points, 1, 1, 0).distortion;
    // The mean of equal points differs from them by rounding.
    constexpr double kRounding = 1e-24;
    const bool differ = total > kRounding * static_cast<double>(points.values.size());
    return differ ? 1 - clustering.distortion / total : 1;
}

}  // namespace assay::simpoint
