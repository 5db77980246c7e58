// K-means clustering and the choice of k as in SimPoint 3.2 (Hamerly, Perelman, Lau, Calder:
// SimPoint 3.0: Faster and More Flexible Program Phase Analysis, JILP 7, 2005).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::simpoint {

// Random numbers that are the same on every machine. Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014, in Vigna's version.
inline std::uint64_t splitmix64(std::uint64_t& state) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// From 0 to less than 1.
inline double uniform(std::uint64_t& state) {
    return static_cast<double>(splitmix64(state) >> 11) * 0x1p-53;
}

// Intervals as points: each block vector normalised to the sum 1, and projected to a few dimensions
// by a random matrix (Sherwood, Perelman, Hamerly, Calder: Automatically Characterizing Large Scale
// Program Behavior, ASPLOS 2002, section 4).

// Points in a row-major matrix.
struct Points {
    std::size_t dimensions = 0;
    std::vector<double> values;

    std::size_t count() const { return dimensions == 0 ? 0 : values.size() / dimensions; }
    std::span<const double> operator[](std::size_t i) const {
        return {values.data() + i * dimensions, dimensions};
    }
};

struct Intervals {
    Points points;
    std::vector<std::uint64_t> instructions;  // of each interval
    std::uint64_t blocks = 0;                 // the highest block number
};

inline constexpr std::size_t kMostDimensions = 100;

// Reads a file of block vectors. The matrix depends only on the seed. Throws Error.
Intervals read_intervals(const std::string& path, std::size_t dimensions, std::uint64_t seed);

struct Clustering {
    Points centers;
    std::vector<std::uint32_t> cluster;  // of each point, by index
    double distortion = 0;               // sum of the squared distances of points to their centers
    double score = 0;                    // bic()
};

struct Search {
    std::size_t most_clusters = 30;
    std::size_t clusters = 0;  // exactly this number, unless 0
    std::size_t seeds = 5;     // number of initialisations; the best one is taken
    std::size_t iterations = 100;
    double threshold = 0.9;  // a part of the range of scores, from 0 to 1
    std::uint64_t seed = 0;
    // If there are more points, an evenly spread sample of this size is searched. It is enough to
    // tell phases apart, and the time grows with the number of points times clusters.
    std::size_t most_points = 4096;
};

// Lloyd's algorithm with centers chosen by k-means++ (Arthur, Vassilvitskii, SODA 2007). Every
// cluster of the result has points. There are fewer than k clusters if there are fewer different
// points.
Clustering k_means(const Points& points, std::size_t k, std::size_t iterations, std::uint64_t seed);

// The Bayesian information criterion of a clustering, seen as a mixture of spherical Gaussians with
// one variance (Pelleg, Moore: X-means, ICML 2000). Higher is better.
double bic(const Clustering& clustering, const Points& points);

// Takes the best of several clusterings for each k up to the most. Returns the one with the
// smallest k whose score reaches `threshold` between the lowest and the highest score.
Clustering find_phases(const Points& points, const Search& search);

// For each cluster the point that is nearest to its center, the first of equals.
std::vector<std::size_t> representatives(const Clustering& clustering, const Points& points);

// The part of the points' variance that the clusters explain: 1 if each point is its center.
double explained_variance(const Clustering& clustering, const Points& points);

}  // namespace assay::simpoint
