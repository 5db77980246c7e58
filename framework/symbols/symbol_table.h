// Function names from ELF symbol tables, with the same choice as Cachegrind. Also functions that
// only unwind tables list.
#pragma once

#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace assay::symbols {

// The name of the function at each of the sorted `addresses`, or an empty name. Reads the first of
// these that exists: .symtab of `object`, .symtab of `debug_file` (which may be null), or .dynsym
// of `object` with its .gnu_debugdata. Entries of procedure linkage tables are named after their
// target, "malloc@plt", and have no linkage name.
std::vector<FunctionName> symbol_names(const ElfFile& object, const ElfFile* debug_file,
                                       std::span<const Address> addresses, Names& names);

// A function and its range, from its symbol.
struct FunctionRange {
    Address low, high;
    std::string_view name;
};

// The functions that contain one of the sorted `addresses`, each once, by address. Tables and names
// are as in symbol_names(). Ranges are cut at the end of the section. Entries of procedure linkage
// tables are left out, because they have no symbols.
std::vector<FunctionRange> functions_with(const ElfFile& object, const ElfFile* debug_file,
                                          std::span<const Address> addresses, Names& names);

// Functions without symbols, from the tables for unwinding the stack, which stripped programs keep.

// The start of the function in .eh_frame at each of the sorted `addresses`, or empty. Also empty in
// procedure linkage tables.
std::vector<std::optional<Address>> unwind_functions(const ElfFile& object,
                                                     std::span<const Address> addresses);

}  // namespace assay::symbols
