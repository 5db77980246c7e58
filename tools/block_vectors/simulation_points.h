// What assay simpoint writes of a file of block vectors, and assay report reads.
#pragma once

#include <cstddef>
#include <string>

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

}  // namespace assay
