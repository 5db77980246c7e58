// The intervals that stand for a program: read from SimPoint's files, recorded, and what each of
// them counts for.
#pragma once

#include "assay/trace_file.h"

#include <cstdint>
#include <string>
#include <vector>

namespace assay::collector {

struct SimulationPoints {
    std::uint64_t interval_size = 0, warm_up = 0;  // instructions
    std::vector<trace_point_t> points;             // in their order; empty: there are none
};

// Of a file with lines "INTERVAL CLUSTER" and one with lines "WEIGHT CLUSTER", in any order, as
// SimPoint 3.2 and assay simpoint write them. Intervals of so many instructions are those of the
// bbv profiler. Throws Error, with file and line, if they are malformed or do not belong together.
SimulationPoints read_simulation_points(const std::string& points, const std::string& weights,
                                        std::uint64_t interval_size, std::uint64_t warm_up);

// How many instructions each of `points` stands for, of `instructions` of the program: their sum is
// just that, whatever the weights add up to.
std::vector<std::uint64_t> shares(const std::vector<trace_point_t>& points,
                                  std::uint64_t instructions);

}  // namespace assay::collector
