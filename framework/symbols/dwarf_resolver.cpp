#include "framework/symbols/dwarf_resolver.h"

#include "framework/symbols/function_tree.h"
#include "framework/symbols/line_table.h"

#include <dwarf.h>

#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace assay::symbols {

namespace {

struct UnitAddresses {
    Dwarf_Off unit;                      // offset of the unit's own entry in .debug_info
    std::vector<std::uint32_t> indices;  // in the addresses that were asked for, ascending
};

// Finds the compilation units whose code was executed, without reading what is in any of them.
class UnitMap {
  public:
    UnitMap(std::span<const Address> addresses, Address code_start)
        : addresses_(addresses), code_start_(code_start) {}

    void read_aranges(Dwarf* dwarf);
    void read_units(Dwarf* dwarf);
    std::vector<UnitAddresses> group();

  private:
    void add_ranges(Dwarf_Die* unit);
    void add(Address low, Address high, Dwarf_Off unit);

    std::span<const Address> addresses_;
    Address code_start_;
    IntervalMap ranges_;
    std::vector<Dwarf_Off> units_;  // values of ranges_
    std::unordered_set<Dwarf_Off> in_aranges_;
};

void UnitMap::add(Address low, Address high, Dwarf_Off unit) {
    if (low < code_start_ || !any_within(addresses_, low, high)) return;
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

// Units that .debug_aranges does not mention: gcc lists all of its units there, clang none. Only
// the headers of the others are read.
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

std::vector<UnitAddresses> UnitMap::group() {
    ranges_.seal();
    std::map<Dwarf_Off, std::vector<std::uint32_t>> groups;
    const std::vector<std::uint32_t> found = ranges_.find_all(addresses_);
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

// Where the addresses of one compilation unit come from.
class Unit {
  public:
    Unit(Dwarf_Die unit, std::span<const Address> addresses, Address code_start, FrameStore& frames)
        : directory_(unit),
          lines_(&unit),
          functions_(split_unit(unit), addresses, code_start),
          frames_(frames) {}

    // `symbol` is the name that the symbol table has, or empty.
    Location locate(Address address, std::string_view symbol);

  private:
    static Dwarf_Die split_unit(Dwarf_Die unit);
    SourcePosition position(std::size_t row, std::uint32_t function) const;
    std::size_t row_with_line(std::size_t row, std::uint32_t function) const;
    std::string_view file_name(const char* file);
    std::string_view function_name(std::uint32_t function);

    CompilationDirectory directory_;
    LineTable lines_;
    FunctionTree functions_;
    FrameStore& frames_;
    std::unordered_map<const char*, std::string_view> file_names_;
    std::unordered_map<std::uint32_t, std::string_view> function_names_;
    std::vector<Frame> chain_;

    // What the last location was made from: neighbours mostly share theirs.
    std::size_t last_row_ = 0;
    std::uint32_t last_function_ = 0;
    std::string_view last_symbol_;
    Location last_;
};

// With -gsplit-dwarf the functions stand in a .dwo file.
Dwarf_Die Unit::split_unit(Dwarf_Die unit) {
    Dwarf_Die split{};
    std::uint8_t type = 0;
    bool is_split =
        dwarf_cu_info(unit.cu, nullptr, &type, nullptr, &split, nullptr, nullptr, nullptr) == 0 &&
        type == DW_UT_skeleton && split.addr != nullptr;
    return is_split ? split : unit;
}

// The last row before `row` that has a line and belongs to the same call of `function`, or
// LineTable::kNone. Compilers mark instructions that stem from no line, or from several, with
// line 0; we count them where the function last was.
std::size_t Unit::row_with_line(std::size_t row, std::uint32_t function) const {
    constexpr std::size_t kMostRows = 1000;
    for (std::size_t i = 0; i < kMostRows && i < row; ++i) {
        std::size_t before = row - 1 - i;
        if (functions_.innermost(lines_.address(before)) == function &&
            lines_.position(before).line != 0) {
            return before;
        }
    }
    return LineTable::kNone;
}

SourcePosition Unit::position(std::size_t row, std::uint32_t function) const {
    SourcePosition found;
    if (row != LineTable::kNone) found = lines_.position(row);
    if (found.line != 0 || function == FunctionTree::kNone) return found;
    if (row != LineTable::kNone) {
        std::size_t before = row_with_line(row, function);
        if (before != LineTable::kNone) return lines_.position(before);
    }
    return functions_.declaration(function);
}

std::string_view Unit::file_name(const char* file) {
    if (file == nullptr || *file == '\0') return kUnknown;
    auto [entry, is_new] = file_names_.try_emplace(file);
    if (is_new) entry->second = frames_.names().keep(directory_.path_of(file));
    return entry->second;
}

std::string_view Unit::function_name(std::uint32_t function) {
    auto [entry, is_new] = function_names_.try_emplace(function);
    if (is_new) {
        std::string name = functions_.name(function);
        entry->second = name.empty() ? kUnknown : frames_.names().readable(name);
    }
    return entry->second;
}

Location Unit::locate(Address address, std::string_view symbol) {
    std::size_t row = lines_.row_of(address);
    std::uint32_t function = functions_.innermost(address);
    bool repeated = !last_.frames.empty() && row == last_row_ && function == last_function_ &&
                    symbol.data() == last_symbol_.data();
    if (repeated) return last_;

    chain_.clear();
    SourcePosition at = position(row, function);
    std::uint32_t outermost = function;
    while (outermost != FunctionTree::kNone &&
           functions_.caller(outermost) != FunctionTree::kNone) {
        chain_.push_back({file_name(at.file), function_name(outermost), at.line});
        at = functions_.call_site(outermost);
        outermost = functions_.caller(outermost);
    }
    std::string_view name = symbol;
    if (name.empty()) name = outermost != FunctionTree::kNone ? function_name(outermost) : kUnknown;
    chain_.push_back({file_name(at.file), name, at.line});

    last_row_ = row;
    last_function_ = function;
    last_symbol_ = symbol;
    last_ = frames_.keep(chain_);
    return last_;
}

}  // namespace

void resolve_with_dwarf(Dwarf* dwarf, Address code_start, std::span<const Address> addresses,
                        std::span<const std::string_view> functions, FrameStore& frames,
                        std::vector<Location>& locations) {
    UnitMap units(addresses, code_start);
    units.read_aranges(dwarf);
    units.read_units(dwarf);
    std::vector<Address> of_unit;
    for (const UnitAddresses& group : units.group()) {
        Dwarf_Die die;
        if (dwarf_offdie(dwarf, group.unit, &die) == nullptr) continue;
        of_unit.clear();
        for (std::uint32_t index : group.indices) of_unit.push_back(addresses[index]);
        Unit unit(die, of_unit, code_start, frames);
        for (std::uint32_t index : group.indices) {
            locations[index] = unit.locate(addresses[index], functions[index]);
        }
    }
}

}  // namespace assay::symbols
