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

// Overwrites those of `locations` (one for each of the sorted `addresses`) of which DWARF knows
// more. `functions` are the names that the symbol table has, empty where it has none; they go
// before the names that DWARF gives to functions that are not inlined. Code below `code_start`
// does not exist: the linker dropped it, but not what DWARF says of it. Returns the names of the
// .dwo files that the functions of some addresses stand in and that cannot be read.
std::set<std::string> resolve_with_dwarf(Dwarf* dwarf, Address code_start,
                                         std::span<const Address> addresses,
                                         std::span<const FunctionName> functions,
                                         FrameStore& frames, std::vector<Location>& locations);

}  // namespace assay::symbols
