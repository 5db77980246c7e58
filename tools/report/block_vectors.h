// Reads the phases of a run: basic block vectors as exp-bbv writes them, and the simulation points
// that SimPoint chose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::report {

struct SimulationPoint {
    std::uint32_t interval, cluster;
    double weight;  // share of the instructions; computed from the phases if there is no file of
                    // weights
};

struct Phases {
    std::vector<std::uint64_t> instructions;  // by interval
    // By interval: the index of the point of its phase. If `labelled`, phases without a point have
    // the number of points as index. Without labels, takes the most similar point, by the Manhattan
    // distance of normalised vectors (Sherwood et al., "Automatically Characterizing Large Scale
    // Program Behavior", ASPLOS 2002). Empty without points.
    std::vector<std::uint32_t> phases;
    std::vector<SimulationPoint> points;
    bool labelled = false;
};

// All paths except `vectors` may be empty. Throws Error with the line if a file is malformed, or if
// labels belong to other vectors or points.
Phases read_phases(const std::string& vectors, const std::string& points,
                   const std::string& weights, const std::string& labels);

}  // namespace assay::report
