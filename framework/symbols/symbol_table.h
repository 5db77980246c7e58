// Function names from ELF symbol tables, as Cachegrind would choose them.
//
// Also the functions that only unwind tables know.
#pragma once

#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace assay::symbols {

// For each of the sorted `addresses` the name of the function that contains it, or an empty one.
// The names come from the first of these that exists: `object`'s .symtab, the .symtab of
// `debug_file` (which may be null), `object`'s .dynsym together with its .gnu_debugdata. Procedure
// linkage table entries are named after their target, "malloc@plt", and the linker has no name for
// them.
std::vector<FunctionName> symbol_names(const ElfFile& object, const ElfFile* debug_file,
                                       std::span<const Address> addresses, Names& names);

// The range of a function as its symbol has it.
struct FunctionRange {
    Address low, high;
    std::string_view name;
};

// The functions of `object` that contain one of the sorted `addresses`, from the same tables, in
// the order of their addresses. Each is there once, under the name that it has above. They do not
// reach beyond their section. Not those of procedure linkage tables, which have no symbols.
std::vector<FunctionRange> functions_with(const ElfFile& object, const ElfFile* debug_file,
                                          std::span<const Address> addresses, Names& names);

// Functions without a symbol, as the tables for unwinding the stack tell them apart. Stripping a
// program leaves these tables.

// For each of the sorted `addresses` the start of the function that .eh_frame has there, or none.
// Procedure linkage tables are not functions: none.
std::vector<std::optional<Address>> unwind_functions(const ElfFile& object,
                                                     std::span<const Address> addresses);

}  // namespace assay::symbols
