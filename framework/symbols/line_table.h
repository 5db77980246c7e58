// The line table of one compilation unit, for lookups by address.
#pragma once

#include "framework/symbols/interval_map.h"

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

namespace assay::symbols {

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
