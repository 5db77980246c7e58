// Locations from DWARF: line tables, functions and inlined calls.
#pragma once

#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::symbols {

struct DebugSource {
    const ElfFile& object;
    const ElfFile& file;  // that holds the DWARF sections; may be `object`
    const std::string& debug_root;
};

// Overwrites those of `locations` (one for each of the sorted `addresses`) of which DWARF knows
// more. `functions` are the names that the symbol table has, empty where it has none; they go
// before the names that DWARF gives to functions that are not inlined.
void resolve_with_dwarf(const DebugSource& source, std::span<const Address> addresses,
                        std::span<const std::string_view> functions, FrameStore& frames,
                        std::vector<Location>& locations);

}  // namespace assay::symbols
