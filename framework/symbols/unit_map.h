// The compilation units of debug information, by the addresses of their code. What is in them is
// not read.
#pragma once

#include "framework/symbols/interval_map.h"

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

namespace assay::symbols {

struct UnitAddresses {
    Dwarf_Off unit;                      // offset of the unit's own entry in .debug_info
    std::vector<std::uint32_t> indices;  // in the addresses that were asked for, ascending
};

class UnitMap {
  public:
    // Code below `code_start` does not exist: the linker dropped it, but not what DWARF says of it.
    // With `wanted`, sorted, only the ranges of units that have one of these addresses are kept.
    UnitMap(Dwarf* dwarf, Address code_start,
            std::optional<std::span<const Address>> wanted = std::nullopt);

    // The offset of the unit's own entry in .debug_info.
    std::optional<Dwarf_Off> find(Address address) const;
    // The units that the sorted addresses belong to.
    std::vector<UnitAddresses> group(std::span<const Address> addresses) const;

  private:
    void read_aranges(Dwarf* dwarf);
    void read_units(Dwarf* dwarf);
    void add_ranges(Dwarf_Die* unit);
    void add(Address low, Address high, Dwarf_Off unit);

    Address code_start_;
    std::optional<std::span<const Address>> wanted_;
    IntervalMap ranges_;
    std::vector<Dwarf_Off> units_;  // values of ranges_
    std::unordered_set<Dwarf_Off> in_aranges_;
};

// With -gsplit-dwarf the functions and variables of a unit stand in a .dwo file: their unit, or
// `unit` itself.
Dwarf_Die split_unit(Dwarf_Die unit);

// The name of the .dwo file that the functions of a unit stand in, if it cannot be read; else null.
const char* missing_split_file(Dwarf_Die unit);

// An upper bound of how many entries the unit of `die` holds: its size in bytes.
std::uint64_t unit_bytes(Dwarf_Die die);

}  // namespace assay::symbols
