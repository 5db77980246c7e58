// The functions of an ELF file, from its own symbol tables, and the vDSO's place and functions.
// Separate debug files are not read, because the program waits meanwhile.
#pragma once

#include "framework/driver/native/memory/proc_maps.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace assay::native {

// Calls `visit` with the symbol's name, as the linker knows it, and the file offset of the
// function's first instruction. A function may be visited twice, because most dynamic symbols are
// in both symbol tables. Never calls `visit` if the file cannot be read or is damaged.
void for_each_function(const std::string& path,
                       const std::function<void(const char* symbol, std::uint64_t offset)>& visit);

// The vDSO is code of the kernel, with its data next to it, that the kernel maps into each process:
// vdso(7).
//
// Moves code and data from their random address to kVdsoAddress if the driver chooses addresses.
// `mappings`: all mappings of this process. Returns the address of the code, which is the old
// address if the kernel refuses the move; 0 if there is no vDSO. After the call the driver must not
// use libc's time functions, which still have the old address.
std::uint64_t move_vdso(const std::vector<Mapping>& mappings);

}  // namespace assay::native
