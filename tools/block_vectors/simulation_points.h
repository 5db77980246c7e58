// What assay simpoint writes of a file of block vectors, and assay report reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// Of a file; more are refused.
inline constexpr std::size_t kMostIntervals = std::size_t{1} << 20;

// Beside the vectors: lines "INTERVAL PHASE", lines "WEIGHT PHASE", the phase of each interval.
struct SimulationPointFiles {
    std::string points, weights, labels;
};

// How they are called if nobody says otherwise: as the vectors, without what says that these are
// compressed.
SimulationPointFiles simulation_point_files(std::string vectors);

// Facts from the comments of a file of block vectors.
struct VectorComments {
    std::uint64_t thread = 1;        // of the program, from 1
    std::uint64_t instructions = 0;  // that the thread has executed; 0: not said
    std::vector<std::string> files;  // from which assay merge has made this file
};
// The file of vectors that the points were chosen from; nothing unless it lies beside the points
// under its usual name. With `thread`, the file of that thread. Throws Error if it cannot be read.
struct FoundVectors {
    std::string path;
    VectorComments comments;
};
std::optional<FoundVectors> vectors_beside(const std::string& points, std::uint64_t thread = 1);

}  // namespace assay
