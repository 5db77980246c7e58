// The line table of one compilation unit: the rows for lookups by address, and the full paths of
// the source files that it names.
//
// Also which compilation unit an address is of.
//
// Also names of source files.
#pragma once

#include "framework/symbols/interval_map.h"

#include <elfutils/libdw.h>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace assay::symbols {

// The folder in which a unit was compiled.
class CompilationDirectory {
  public:
    explicit CompilationDirectory(Dwarf_Die unit);

    // `file` as libdw names it: with its entry of the directory table, which may be relative to
    // the compilation directory. Joined without making it any shorter, as Cachegrind does, so
    // "./elf" and "../include/list.h" are "./elf/../include/list.h".
    std::string path_of(std::string_view file) const;

  private:
    std::string directory_;  // with a final '/', or empty if unknown
    bool may_be_included_ = false;
};

struct SourcePosition {
    const char* file = nullptr;  // null if unknown; lives as long as the Dwarf handle
    std::uint32_t line = 0;      // 0 if unknown
};

class LineTable {
  public:
    static constexpr std::size_t kNone = SIZE_MAX;

    explicit LineTable(Dwarf_Die* unit);

    // The row that `address` belongs to: the last one at or before it, unless that one only marks
    // the end of a sequence. Rows are numbered by ascending address.
    std::size_t row_of(Address address) const;
    Address address(std::size_t row) const { return starts_[row]; }
    SourcePosition position(std::size_t row) const;

  private:
    Dwarf_Lines* lines_ = nullptr;
    std::vector<Address> starts_;
};

// The compilation units of debug information, by the addresses of their code. What is in them is
// not read.

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

// Which source files the debug information of an object names.

// As Symbolizer names files: of all units' line tables, of the object itself or of its separate
// debug file below `debug_root`. Empty if there is no debug information; or if `build_id`
// (lower-case hexadecimal) is not empty, and not the object's.
std::unordered_set<std::string> source_names(const std::string& object_path,
                                             const std::string& build_id,
                                             const std::string& debug_root);

}  // namespace assay::symbols
