#include "framework/data_references/debug_entries.h"

#include <dwarf.h>

#include <iterator>

namespace assay::data_references {
namespace {

constexpr int kDeepest = 64;  // blocks and namespaces within one another

}  // namespace

DebugEntries::DebugEntries(Dwarf* dwarf, symbols::DataTypes& types) : types_(types) {
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    Dwarf_Die split;
    while (dwarf_get_units(dwarf, unit, &unit, nullptr, nullptr, &die, &split) == 0)
        add_children(split.addr != nullptr ? split : die, "", 0);
}

void DebugEntries::add_children(Dwarf_Die& parent, const std::string& scope, int depth) {
    if (depth == kDeepest) return;
    const auto inner = [&](Dwarf_Die& child) {
        const char* name = dwarf_diename(&child);
        return name != nullptr ? scope + name + "::" : scope;
    };
    Dwarf_Die child;
    const void* before = parent.addr;
    // A damaged file may call an earlier entry the next one.
    for (int rest = dwarf_child(&parent, &child); rest == 0 && child.addr > before;
         rest = dwarf_siblingof(&child, &child)) {
        before = child.addr;
        switch (dwarf_tag(&child)) {
            case DW_TAG_variable:
                add_variable(child);
                break;
            case DW_TAG_subprogram:
                add_function(child);
                add_children(child, scope, depth + 1);
                break;
            case DW_TAG_lexical_block:
            case DW_TAG_inlined_subroutine:
                add_children(child, scope, depth + 1);
                break;
            case DW_TAG_namespace:
                add_children(child, inner(child), depth + 1);
                break;
            case DW_TAG_structure_type:
            case DW_TAG_class_type:
            case DW_TAG_union_type:
                if (!scope.empty()) types_.set_scope(child, scope);
                if (dwarf_haschildren(&child)) add_children(child, inner(child), depth + 1);
                break;
            default:
                break;
        }
    }
}

// Types are not asked for yet: their scopes are not known.
void DebugEntries::add_variable(Dwarf_Die& variable) {
    Dwarf_Attribute attribute;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_attr(&variable, DW_AT_location, &attribute) == nullptr ||
        dwarf_whatform(&attribute) == DW_FORM_sec_offset ||
        dwarf_whatform(&attribute) == DW_FORM_loclistx ||
        dwarf_getlocation(&attribute, &operations, &count) != 0 || count != 1)
        return;
    std::uint64_t address = operations->number;
    if (operations->atom != DW_OP_addr) {
        Dwarf_Attribute indirect;
        if ((operations->atom != DW_OP_addrx && operations->atom != DW_OP_GNU_addr_index) ||
            dwarf_getlocation_attr(&attribute, operations, &indirect) != 0 ||
            dwarf_formaddr(&indirect, &address) != 0)
            return;
    }
    variables_.try_emplace(address, VariableEntry{variable, 0, 0, false});
}

void DebugEntries::add_function(Dwarf_Die& function) {
    std::ptrdiff_t offset = 0;
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    for (int ranges = 0; ranges < kDeepest; ++ranges) {
        offset = dwarf_ranges(&function, offset, &base, &start, &end);
        if (offset <= 0) return;
        // What the linker has dropped begins at 0.
        if (start != 0 && start < end) code_.try_emplace(start, Code{end, function});
    }
}

const Dwarf_Die* DebugEntries::function_at(std::uint64_t address) const {
    const auto after = code_.upper_bound(address);
    if (after == code_.begin()) return nullptr;
    const Code& code = std::prev(after)->second;
    return address < code.end ? &code.function : nullptr;
}

std::optional<DebugEntries::Variable> DebugEntries::variable_at(std::uint64_t address) {
    const auto after = variables_.upper_bound(address);
    if (after == variables_.begin()) return std::nullopt;
    auto& [start, entry] = *std::prev(after);
    if (!entry.read) {
        entry.type = types_.type_of(entry.die);
        entry.size = types_[entry.type].size;
        entry.read = true;
    }
    if (address - start >= entry.size) return std::nullopt;
    return Variable{start, entry.type};
}

}  // namespace assay::data_references
