// The calling contexts of a profile as the frames of a flame graph.
#pragma once

#include "tools/profile/whole_profile.h"

#include <cstdint>
#include <vector>

namespace assay::report {

struct FlameFrame {
    std::uint32_t parent, depth;
    Strings::Id name;
    bool handler, inlined;
    std::vector<std::uint64_t> inclusive;  // by event
};

// Each behind its parent. The first is all of them, its own parent, and has no name. Contexts with
// the same path of function names are one frame; what is called from too deep a stack belongs to
// its outermost frames.
std::vector<FlameFrame> flame_frames(const WholeProfile& profile);

}  // namespace assay::report
