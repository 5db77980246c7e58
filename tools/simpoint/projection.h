// Intervals as points: each block vector normalised to the sum 1, and projected to a few dimensions
// by a random matrix (Sherwood, Perelman, Hamerly, Calder: Automatically Characterizing Large Scale
// Program Behavior, ASPLOS 2002, section 4).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::simpoint {

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
    std::vector<std::uint64_t> instructions;  // of each
    std::uint64_t blocks = 0;                 // the highest number of one
};

inline constexpr std::size_t kMostDimensions = 100;

// Reads a file of block vectors. The matrix depends on the seed only. Throws Error.
Intervals read_intervals(const std::string& path, std::size_t dimensions, std::uint64_t seed);

}  // namespace assay::simpoint
