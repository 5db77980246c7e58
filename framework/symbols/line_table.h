// The line table of one compilation unit: its rows by address, and the full paths of its source
// files. Also finds the compilation unit of an address.
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

    // `file` is the name from libdw, with its entry of the directory table, and may be relative to
    // the compilation directory. The path is joined as in Cachegrind, without normalization:
    // "./elf" and "../include/list.h" give "./elf/../include/list.h".
    std::string path_of(std::string_view file) const;

  private:
    std::string directory_;  // with a final '/', or empty if unknown
    bool may_be_included_ = false;
};

struct SourcePosition {
    const char* file = nullptr;  // null if unknown; valid as long as the Dwarf handle
    std::uint32_t line = 0;      // 0 if unknown
};

class LineTable {
  public:
    static constexpr std::size_t kNone = SIZE_MAX;

    explicit LineTable(Dwarf_Die* unit);

    // The last row at or before `address`; kNone if that row only marks the end of a sequence. Rows
    // are numbered by ascending address.
    std::size_t row_of(Address address) const;
    Address address(std::size_t row) const { return starts_[row]; }
    SourcePosition position(std::size_t row) const;

  private:
    Dwarf_Lines* lines_ = nullptr;
    std::vector<Address> starts_;
};

// The compilation units of debug information, by the addresses of their code. Reads only the
// headers of units.

struct UnitAddresses {
    Dwarf_Off unit;                      // offset of the unit's own entry in .debug_info
    std::vector<std::uint32_t> indices;  // into the requested addresses, ascending
};

class UnitMap {
  public:
    // Ignores addresses below `code_start`: the linker dropped this code, but not its DWARF. With
    // `wanted`, which is sorted, keeps only the ranges that contain one of these addresses.
    UnitMap(Dwarf* dwarf, Address code_start,
            std::optional<std::span<const Address>> wanted = std::nullopt);

    // The offset of the unit's own entry in .debug_info.
    std::optional<Dwarf_Off> find(Address address) const;
    // Groups the sorted addresses by their units.
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

// With -gsplit-dwarf, the functions and variables of a unit are in a .dwo file. Returns the unit in
// that file, or else `unit` itself.
Dwarf_Die split_unit(Dwarf_Die unit);

// The name of the .dwo file of a unit, if it cannot be read; otherwise null.
const char* missing_split_file(Dwarf_Die unit);

// The size of the unit of `die`, which is an upper bound for its number of entries.
std::uint64_t unit_bytes(Dwarf_Die die);

// The source files in the line tables of all units, with the same names as in Symbolizer. Reads the
// object, or its separate debug file below `debug_root`. Empty without debug information, or if
// `build_id` (lower-case hexadecimal) is given and differs from that of the object.
std::unordered_set<std::string> source_names(const std::string& object_path,
                                             const std::string& build_id,
                                             const std::string& debug_root);

}  // namespace assay::symbols
