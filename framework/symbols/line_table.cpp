#include "framework/symbols/line_table.h"

#include <algorithm>

namespace assay::symbols {

LineTable::LineTable(Dwarf_Die* unit) {
    std::size_t count = 0;
    if (dwarf_getsrclines(unit, &lines_, &count) != 0) return;
    starts_.reserve(count);
    for (std::size_t row = 0; row < count; ++row) {
        Dwarf_Addr start = 0;
        dwarf_lineaddr(dwarf_onesrcline(lines_, row), &start);
        starts_.push_back(start);  // libdw has sorted them
    }
}

std::size_t LineTable::row_of(Address address) const {
    auto next = std::upper_bound(starts_.begin(), starts_.end(), address);
    if (next == starts_.begin()) return kNone;
    auto row = static_cast<std::size_t>(next - starts_.begin()) - 1;
    bool ends = true;
    dwarf_lineendsequence(dwarf_onesrcline(lines_, row), &ends);
    return ends ? kNone : row;
}

SourcePosition LineTable::position(std::size_t row) const {
    Dwarf_Line* line = dwarf_onesrcline(lines_, row);
    int number = 0;
    dwarf_lineno(line, &number);
    return {dwarf_linesrc(line, nullptr, nullptr),
            number > 0 ? static_cast<std::uint32_t>(number) : 0};
}

}  // namespace assay::symbols
