// Locations from DWARF: line tables, functions and inlined calls.
#pragma once

#include "framework/symbols/frame_store.h"
#include "framework/symbols/interval_map.h"

#include <elfutils/libdw.h>

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::symbols {

// Improves `locations`, one for each of the sorted `addresses`, with DWARF. `functions` are the
// names in the symbol table, or empty; for functions that are not inlined they replace the names in
// DWARF. Addresses in DWARF below `code_start` are ignored: the linker dropped this code. Returns
// the names of needed .dwo files that cannot be read.
std::set<std::string> resolve_with_dwarf(Dwarf* dwarf, Address code_start,
                                         std::span<const Address> addresses,
                                         std::span<const FunctionName> functions,
                                         FrameStore& frames, std::vector<Location>& locations);

}  // namespace assay::symbols
