#include "framework/symbols/dwarf_resolver.h"

#include "framework/symbols/function_tree.h"
#include "framework/symbols/line_table.h"

#include <cstdint>
#include <unordered_map>

namespace assay::symbols {

namespace {

// Resolves the addresses of one compilation unit.
class Unit {
  public:
    Unit(Dwarf_Die unit, std::span<const Address> addresses, Address code_start, FrameStore& frames)
        : directory_(unit),
          lines_(&unit),
          functions_(split_unit(unit), addresses, code_start),
          frames_(frames) {}

    // `symbol` is the name in the symbol table, or empty.
    Location locate(Address address, const FunctionName& symbol);

  private:
    SourcePosition position(std::size_t row, std::uint32_t function) const;
    std::size_t row_with_line(std::size_t row, std::uint32_t function) const;
    std::string_view file_name(const char* file);
    FunctionName function_name(std::uint32_t function);

    CompilationDirectory directory_;
    LineTable lines_;
    FunctionTree functions_;
    FrameStore& frames_;
    std::unordered_map<const char*, std::string_view> file_names_;
    std::unordered_map<std::uint32_t, FunctionName> function_names_;
    std::vector<Frame> chain_;

    // The last location and its origin, because neighbouring addresses mostly share a location.
    std::size_t last_row_ = 0;
    std::uint32_t last_function_ = 0;
    FunctionName last_symbol_;
    Location last_;
};

// The last row before `row` that has a line and belongs to the same call of `function`, or
// LineTable::kNone. Compilers give line 0 to instructions that belong to no line or to several.
// assay counts these at the preceding line of the function.
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

FunctionName Unit::function_name(std::uint32_t function) {
    auto [entry, is_new] = function_names_.try_emplace(function);
    if (is_new) {
        std::string name = functions_.name(function);
        entry->second = frames_.names().function(name);
    }
    return entry->second;
}

Location Unit::locate(Address address, const FunctionName& symbol) {
    std::size_t row = lines_.row_of(address);
    std::uint32_t function = functions_.innermost(address);
    bool repeated = !last_.frames.empty() && row == last_row_ && function == last_function_ &&
                    symbol.is(last_symbol_);
    if (repeated) return last_;

    chain_.clear();
    SourcePosition at = position(row, function);
    std::uint32_t outermost = function;
    while (outermost != FunctionTree::kNone &&
           functions_.caller(outermost) != FunctionTree::kNone) {
        const FunctionName name = function_name(outermost);
        chain_.push_back({file_name(at.file), name.readable, at.line, name.linkage});
        at = functions_.call_site(outermost);
        outermost = functions_.caller(outermost);
    }
    FunctionName name = symbol;
    if (name.readable.empty())
        name = outermost != FunctionTree::kNone ? function_name(outermost)
                                                : FunctionName{kUnknown, {}};
    chain_.push_back({file_name(at.file), name.readable, at.line, name.linkage});

    last_row_ = row;
    last_function_ = function;
    last_symbol_ = symbol;
    last_ = frames_.keep(chain_);
    return last_;
}

}  // namespace

std::set<std::string> resolve_with_dwarf(Dwarf* dwarf, Address code_start,
                                         std::span<const Address> addresses,
                                         std::span<const FunctionName> functions,
                                         FrameStore& frames, std::vector<Location>& locations) {
    std::set<std::string> missing;
    const UnitMap units(dwarf, code_start, addresses);
    std::vector<Address> of_unit;
    for (const UnitAddresses& group : units.group(addresses)) {
        Dwarf_Die die;
        if (dwarf_offdie(dwarf, group.unit, &die) == nullptr) continue;
        if (const char* const name = missing_split_file(die)) missing.insert(name);
        of_unit.clear();
        for (std::uint32_t index : group.indices) of_unit.push_back(addresses[index]);
        Unit unit(die, of_unit, code_start, frames);
        for (std::uint32_t index : group.indices) {
            locations[index] = unit.locate(addresses[index], functions[index]);
        }
    }
    return missing;
}

}  // namespace assay::symbols
