#include "framework/symbols/compilation_directory.h"

#include <dwarf.h>

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

}  // namespace assay::symbols
