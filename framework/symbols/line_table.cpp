#include "framework/symbols/line_table.h"

#include "framework/symbols/debug_info.h"

#include <dwarf.h>
#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

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
    bool complete = file.starts_with('/') || file == "???" ||  // also libdw's name for "unknown"
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

UnitMap::UnitMap(Dwarf* dwarf, Address code_start, std::optional<std::span<const Address>> wanted)
    : code_start_(code_start), wanted_(wanted) {
    read_aranges(dwarf);
    read_units(dwarf);
    ranges_.seal();
    in_aranges_ = {};
}

void UnitMap::add(Address low, Address high, Dwarf_Off unit) {
    if (low < code_start_ || (wanted_ && !any_within(*wanted_, low, high))) return;
    if (units_.empty() || units_.back() != unit) units_.push_back(unit);
    ranges_.add(low, high, static_cast<std::uint32_t>(units_.size() - 1));
}

void UnitMap::read_aranges(Dwarf* dwarf) {
    Dwarf_Aranges* aranges = nullptr;
    std::size_t count = 0;
    if (dwarf_getaranges(dwarf, &aranges, &count) != 0) return;
    for (std::size_t i = 0; i < count; ++i) {
        Dwarf_Addr start = 0;
        Dwarf_Word length = 0;
        Dwarf_Off unit = 0;
        Dwarf_Arange* arange = dwarf_onearange(aranges, i);
        if (arange == nullptr || dwarf_getarangeinfo(arange, &start, &length, &unit) != 0) continue;
        in_aranges_.insert(unit);
        add(start, start + length, unit);
    }
}

// Adds the units that .debug_aranges does not list: gcc lists all units there, but clang lists no
// units. Reads only the headers of units.
void UnitMap::read_units(Dwarf* dwarf) {
    Dwarf_Off next = 0;
    std::size_t header_bytes = 0;
    for (Dwarf_Off at = 0;
         dwarf_nextcu(dwarf, at, &next, &header_bytes, nullptr, nullptr, nullptr) == 0 && next > at;
         at = next) {
        Dwarf_Die die;
        if (in_aranges_.contains(at + header_bytes) ||
            dwarf_offdie(dwarf, at + header_bytes, &die) == nullptr) {
            continue;
        }
        std::uint8_t type = 0;
        dwarf_cu_info(die.cu, nullptr, &type, nullptr, nullptr, nullptr, nullptr, nullptr);
        if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
        add_ranges(&die);
    }
}

void UnitMap::add_ranges(Dwarf_Die* unit) {
    Dwarf_Addr base = 0, low = 0, high = 0;
    for (std::ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &low, &high)) > 0;) {
        add(low, high, dwarf_dieoffset(unit));
    }
}

std::optional<Dwarf_Off> UnitMap::find(Address address) const {
    const std::uint32_t found = ranges_.find(address);
    if (found == IntervalMap::kNone) return std::nullopt;
    return units_[found];
}

std::vector<UnitAddresses> UnitMap::group(std::span<const Address> addresses) const {
    std::map<Dwarf_Off, std::vector<std::uint32_t>> groups;
    const std::vector<std::uint32_t> found = ranges_.find_all(addresses);
    std::uint32_t last = IntervalMap::kNone;
    std::vector<std::uint32_t>* group = nullptr;
    for (std::uint32_t i = 0; i < found.size(); ++i) {
        if (found[i] == IntervalMap::kNone) continue;
        if (found[i] != std::exchange(last, found[i]) || group == nullptr)
            group = &groups[units_[last]];
        group->push_back(i);
    }
    std::vector<UnitAddresses> result;
    result.reserve(groups.size());
    for (auto& [unit, indices] : groups) result.push_back({unit, std::move(indices)});
    return result;
}

Dwarf_Die split_unit(Dwarf_Die unit) {
    Dwarf_Die split{};
    std::uint8_t type = 0;
    bool is_split =
        dwarf_cu_info(unit.cu, nullptr, &type, nullptr, &split, nullptr, nullptr, nullptr) == 0 &&
        type == DW_UT_skeleton && split.addr != nullptr;
    return is_split ? split : unit;
}

const char* missing_split_file(Dwarf_Die unit) {
    Dwarf_Die split{};
    std::uint8_t type = 0;
    if (dwarf_cu_info(unit.cu, nullptr, &type, nullptr, &split, nullptr, nullptr, nullptr) != 0 ||
        type != DW_UT_skeleton || split.addr != nullptr)
        return nullptr;
    Dwarf_Attribute attribute;
    for (const unsigned kind : {DW_AT_dwo_name, DW_AT_GNU_dwo_name})
        if (dwarf_attr(&unit, kind, &attribute) != nullptr) return dwarf_formstring(&attribute);
    return nullptr;
}

std::uint64_t unit_bytes(Dwarf_Die die) {
    Dwarf_Off start = dwarf_dieoffset(&die) - dwarf_cuoffset(&die), next = 0;
    std::size_t header_bytes = 0;
    int status = dwarf_nextcu(dwarf_cu_getdwarf(die.cu), start, &next, &header_bytes, nullptr,
                              nullptr, nullptr);
    return status == 0 && next > start ? next - start : 0;
}

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
