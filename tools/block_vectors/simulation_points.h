// The files that assay simpoint writes for a file of block vectors, and assay report reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// The most intervals of a file. More are refused.
inline constexpr std::size_t kMostIntervals = std::size_t{1} << 20;

// Names of files: lines "INTERVAL PHASE", lines "WEIGHT PHASE", and the phase of each interval.
struct SimulationPointFiles {
    std::string points, weights, labels;
};

// The default names: the name of the vectors without the ending of compressed files, plus an
// ending.
SimulationPointFiles simulation_point_files(std::string vectors);

// Facts from the comments of a file of block vectors.
struct VectorComments {
    std::uint64_t thread = 1;        // of the program, from 1
    std::uint64_t instructions = 0;  // that the thread has executed; 0: unknown
    std::vector<std::string> files;  // from which assay merge made this file
};
// Finds the file of vectors that the points were chosen from: beside the points, under its default
// name. No value if it is not there. With `thread`, finds the file of that thread. Throws Error if
// the file cannot be read.
struct FoundVectors {
    std::string path;
    VectorComments comments;
};
std::optional<FoundVectors> vectors_beside(const std::string& points, std::uint64_t thread = 1);

}  // namespace assay
