// The functions of an ELF file, from its own symbol tables. Separate files with debug information
// are not looked at: the program waits meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace assay::native {

// Calls `visit` with the symbol's name, as the linker knows it, and the offset in the file of the
// function's first instruction; perhaps twice, since the dynamic symbols mostly stand in both
// tables. Visits none if the file cannot be read or is damaged.
void for_each_function(const std::string& path,
                       const std::function<void(const char* symbol, std::uint64_t offset)>& visit);

}  // namespace assay::native
