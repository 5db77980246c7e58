// Functions without a symbol, as the tables for unwinding the stack tell them apart. Stripping a
// program leaves these tables.
#pragma once

#include "framework/symbols/elf_file.h"

#include <optional>
#include <span>
#include <vector>

namespace assay::symbols {

// For each of the sorted `addresses` the start of the function that .eh_frame has there, or none.
// Procedure linkage tables are not functions: none.
std::vector<std::optional<Address>> unwind_functions(const ElfFile& object,
                                                     std::span<const Address> addresses);

}  // namespace assay::symbols
