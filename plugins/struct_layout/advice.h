// The report of the profiler. For the structs with the most misses, it shows the use of their
// members, and the misses of each layout in a replay.
#pragma once

#include "plugins/common/geometry.h"
#include "plugins/struct_layout/replay.h"

#include <assay/profiler.hpp>

#include <cstddef>
#include <string>

namespace struct_layout {

struct Wanted {
    std::string name;  // of a struct; "": the structs with the most misses
    std::size_t most = 3;
};

std::string advise(const assay::Trace& trace, Recording& recording,
                   const cache::Geometries& geometries, const Wanted& wanted);

}  // namespace struct_layout
