// The answers of CPUID at each x86-64 level (--cpu=): the features of the level, and constants for
// everything else. So libc chooses the same functions and thresholds on every machine.
#pragma once

#include "framework/driver/native/processor/features.h"

namespace assay::native {

// For a level other than kHost. Leaf 0xd only has the features: its sizes depend on where the real
// processor keeps components.
CpuidAnswer level_cpuid(trace::CpuLevel level, std::uint32_t leaf, std::uint32_t subleaf);
// The leaf that answers for `leaf`: beyond the last one, the highest basic one (SDM volume 2,
// CPUID).
std::uint32_t level_leaf(std::uint32_t leaf);
Components level_xcr0(trace::CpuLevel level);

}  // namespace assay::native
