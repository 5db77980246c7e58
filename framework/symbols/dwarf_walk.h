// Steps through DWARF entries that end even where the entries are broken.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::symbols {

// Real programs nest a few dozen levels deep.
inline constexpr int kMaxDepth = 256;

// An upper bound of how many entries the unit of `die` holds: its size in bytes.
std::uint64_t unit_bytes(Dwarf_Die die);

// The children of entries. They are read once and kept: a walk through a unit reads them, and so
// does the search for what encloses a function, for each function again.
class Children {
  public:
    // In ascending order. Valid as long as this object.
    std::span<const Dwarf_Die> of(Dwarf_Die parent);

  private:
    void read(Dwarf_Die parent, std::vector<Dwarf_Die>& children);

    std::unordered_map<const void*, std::vector<Dwarf_Die>> known_;  // by address of the parent
    // How many more entries to read of a unit: broken ones could be linked so that the children
    // of many are the same.
    std::unordered_map<const Dwarf_CU*, std::uint64_t> left_;
};

}  // namespace assay::symbols
