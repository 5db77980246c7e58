// The line table of one compilation unit: the rows for lookups by address, and the full paths of
// the source files that it names.
#pragma once

#include "framework/symbols/interval_map.h"

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <string_view>
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

}  // namespace assay::symbols
