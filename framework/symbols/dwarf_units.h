// Finds the compilation units whose code was executed, without reading what is in any of them.
#pragma once

#include "framework/symbols/interval_map.h"

#include <elfutils/libdw.h>

#include <cstdint>
#include <span>
#include <vector>

namespace assay::symbols {

struct UnitAddresses {
    Dwarf_Off unit;                      // offset of the unit's own entry in .debug_info
    std::vector<std::uint32_t> indices;  // in the addresses that were asked for, ascending
};

// Addresses below `code_start` are leftovers of code that the linker dropped.
std::vector<UnitAddresses> group_by_unit(Dwarf* dwarf, std::span<const Address> addresses,
                                         Address code_start);

}  // namespace assay::symbols
