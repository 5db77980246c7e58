#include "framework/symbols/line_table.h"

#include <dwarf.h>

#include <algorithm>

namespace assay::symbols {

CompilationDirectory::CompilationDirectory(Dwarf_Die unit) {
    Dwarf_Attribute attribute;
    const char* directory = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
    if (directory != nullptr && *directory != '\0') directory_ = std::string(directory) + "/";
    Dwarf_Half version = 0;
    dwarf_cu_info(unit.cu, &version, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    // Entry 0 of the directory table is the compilation directory. Up to DWARF 4 it is implied,
    // and libdw fills it in.
    may_be_included_ = version < 5;
}

std::string CompilationDirectory::path_of(std::string_view file) const {
    bool complete = file.starts_with('/') || file == "???" ||  // libdw's name for "unknown", too
                    (may_be_included_ && !directory_.empty() && file.starts_with(directory_));
    return complete ? std::string(file) : directory_ + std::string(file);
}

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
