// Steps through DWARF entries that end even where the entries are broken.
#pragma once

#include <elfutils/libdw.h>

namespace assay::symbols {

// Real programs nest a few dozen levels deep.
inline constexpr int kMaxDepth = 256;

inline bool first_child(Dwarf_Die* parent, Dwarf_Die* child) {
    return dwarf_child(parent, child) == 0;
}

// Moves `die` to its next sibling. A broken DW_AT_sibling might point backwards.
inline bool next_sibling(Dwarf_Die* die) {
    Dwarf_Off offset = dwarf_dieoffset(die);
    return dwarf_siblingof(die, die) == 0 && dwarf_dieoffset(die) > offset;
}

}  // namespace assay::symbols
