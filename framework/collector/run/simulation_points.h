// The intervals that represent a program. They are read from SimPoint's files and recorded.
// shares() gives their weights.
#pragma once

#include "assay/trace_file.h"

#include <cstdint>
#include <string>
#include <vector>

namespace assay::collector {

struct SimulationPoints {
    std::uint64_t interval_size = 0, warm_up = 0;  // numbers of instructions
    std::vector<trace_point_t> points;  // in the order of execution; empty if there are no points
};

// Reads a file of lines "INTERVAL CLUSTER" and a file of lines "WEIGHT CLUSTER", in any order, as
// SimPoint 3.2 and assay simpoint write them. Intervals are those of the bbv profiler, with
// `interval_size` instructions each. Throws Error with file and line if the files are malformed or
// do not belong together.
SimulationPoints read_simulation_points(const std::string& points, const std::string& weights,
                                        std::uint64_t interval_size, std::uint64_t warm_up);

// Returns the number of instructions that each point stands for. The sum is `instructions`,
// whatever the weights add up to.
std::vector<std::uint64_t> shares(const std::vector<trace_point_t>& points,
                                  std::uint64_t instructions);

}  // namespace assay::collector
