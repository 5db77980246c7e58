#include "framework/symbols/source_names.h"

#include "framework/symbols/debug_info.h"
#include "framework/symbols/line_table.h"

namespace assay::symbols {

namespace {

void add_names(Dwarf_Die unit, std::unordered_set<std::string>& names) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(&unit, &files, &count) != 0) return;
    const CompilationDirectory directory(unit);
    for (std::size_t i = 0; i < count; ++i)
        if (const char* const name = dwarf_filesrc(files, i, nullptr, nullptr))
            names.insert(directory.path_of(name));
}

}  // namespace

std::unordered_set<std::string> source_names(const std::string& object_path,
                                             const std::string& build_id,
                                             const std::string& debug_root) {
    std::unordered_set<std::string> names;
    const auto object = ElfFile::open(object_path);
    if (!object || (!build_id.empty() && object->build_id() != build_id)) return names;
    const DebugInfo info(object_path, debug_root, ImageCache(""));
    if (info.dwarf() == nullptr) return names;
    Dwarf_Off next = 0;
    std::size_t header_bytes = 0;
    for (Dwarf_Off at = 0;
         dwarf_nextcu(info.dwarf(), at, &next, &header_bytes, nullptr, nullptr, nullptr) == 0 &&
         next > at;
         at = next) {
        Dwarf_Die unit;
        if (dwarf_offdie(info.dwarf(), at + header_bytes, &unit) != nullptr) add_names(unit, names);
    }
    return names;
}

}  // namespace assay::symbols
