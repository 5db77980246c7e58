// The kernel's code that it maps into each process, and the data beside it: vdso(7).
#pragma once

#include "framework/driver/native/memory/proc_maps.h"

#include <cstdint>
#include <vector>

namespace assay::native {

// Moves both from where the kernel has put them, at random, to kVdsoAddress, if the driver chooses
// addresses and knows their sizes (`mappings`: of this process). Returns the address of the code,
// which is the old one if the kernel does not let them be moved; 0 if there is none. libc's
// functions of time are not to be called from here on: they have the old address.
std::uint64_t move_vdso(const std::vector<Mapping>& mappings);

}  // namespace assay::native
