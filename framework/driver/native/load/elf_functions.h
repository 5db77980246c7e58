// The functions of an ELF file, from its own symbol tables. Separate files with debug information
// are not looked at: the program waits meanwhile.
//
// Also the vDSO: where it is, and its functions.
#pragma once

#include "framework/driver/native/memory/proc_maps.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace assay::native {

// Calls `visit` with the symbol's name, as the linker knows it, and the offset in the file of the
// function's first instruction; perhaps twice, since the dynamic symbols mostly stand in both
// tables. Visits none if the file cannot be read or is damaged.
void for_each_function(const std::string& path,
                       const std::function<void(const char* symbol, std::uint64_t offset)>& visit);

// The kernel's code that it maps into each process, and the data beside it: vdso(7).

// Moves both from where the kernel has put them, at random, to kVdsoAddress, if the driver chooses
// addresses and knows their sizes (`mappings`: of this process). Returns the address of the code,
// which is the old one if the kernel does not let them be moved; 0 if there is none. libc's
// functions of time are not to be called from here on: they have the old address.
std::uint64_t move_vdso(const std::vector<Mapping>& mappings);

}  // namespace assay::native
