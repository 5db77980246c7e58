// The phases of a run: basic block vectors as exp-bbv writes them, and the points that SimPoint
// chose from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::report {

struct SimulationPoint {
    std::uint32_t interval, cluster;
    double weight;  // share of the instructions; computed from the phases if no file says it
};

struct Phases {
    std::vector<std::uint64_t> instructions;  // of each interval
    // Of each interval: the index of the point of its phase; if `labelled`, as many as there are
    // points for a phase without one. Else that of the point that it resembles most, by the
    // Manhattan distance of its normalised vector (Sherwood et al., "Automatically Characterizing
    // Large Scale Program Behavior", ASPLOS 2002). Empty if there are no points.
    std::vector<std::uint32_t> phases;
    std::vector<SimulationPoint> points;
    bool labelled = false;
};

// All but the vectors may be empty. Throws Error if a file is malformed, with its line, or the
// labels are of other vectors or points.
Phases read_phases(const std::string& vectors, const std::string& points,
                   const std::string& weights, const std::string& labels);

}  // namespace assay::report
