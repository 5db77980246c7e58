#include "framework/data_references/type_tree.h"

#include <dwarf.h>
#include <algorithm>
#include <iterator>
#include <utility>

namespace assay::data_references {
namespace {

constexpr int kDeepest = 64;  // nesting of blocks and namespaces

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
    // In damaged files, the next entry may be an earlier one.
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

// Does not read the type yet, because the scopes of types are not yet known.
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
        // Code that the linker has dropped begins at 0.
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

namespace {

using symbols::DataMember;
using symbols::DataType;

std::string kind_name(DataType::Kind kind) {
    switch (kind) {
        case DataType::Kind::kStruct:
            return "struct";
        case DataType::Kind::kClass:
            return "class";
        case DataType::Kind::kUnion:
            return "union";
        case DataType::Kind::kPointer:
            return "pointer";
        default:
            return "other";
    }
}

}  // namespace

std::uint32_t TypeTree::add(TypeNode&& node) {
    Key key(node.parent, node.name, node.offset, node.size, node.file, node.line, node.first_bit);
    const auto [known, is_new] =
        numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back(std::move(node));
    return known->second;
}

std::uint32_t TypeTree::add(const symbols::DataPlace& place, symbols::DataTypes& types) {
    const DataType& outermost = types[place.type];
    TypeNode type;
    type.name = types.full_name(place.type);
    type.size = outermost.size;
    type.kind = kind_name(outermost.kind);
    type.file = outermost.file;
    type.line = outermost.line;
    type.alignment = types.alignment(place.type);
    std::uint32_t number = add(std::move(type));
    std::uint64_t start = 0;  // of the innermost struct
    for (const symbols::DataPlace::Step& step : place.members) {
        const DataType& in = types[step.in];
        const DataMember& first = in.members[step.first];
        const DataMember& last = in.members[step.last];
        TypeNode member;
        member.parent = number;
        member.is_member = true;
        for (std::uint32_t i = step.first; i <= step.last; ++i)
            member.name += (i == step.first ? "" : "+") + in.members[i].name;
        member.bit_fields = step.last - step.first + 1;
        member.type = types.full_name(first.type);
        member.alignment = std::max(first.alignment, types.alignment(first.type));
        if (member.name.empty()) member.name = member.type;
        member.offset = start + first.offset;
        member.size = last.offset + last.size - first.offset;
        if (first.bits != 0) {
            member.first_bit = first.first_bit;
            member.bits = static_cast<std::uint32_t>((last.offset - first.offset) * 8) +
                          last.first_bit + last.bits - first.first_bit;
        }
        number = add(std::move(member));
        start += first.offset;
    }
    return number;
}

void TypeTree::add_members(const symbols::DataPlace& place, symbols::DataTypes& types) {
    const auto count = static_cast<std::uint32_t>(types[place.type].members.size());
    for (std::uint32_t i = 0; i < count; ++i) {
        symbols::DataPlace member;
        member.type = place.type;
        member.members.push_back({place.type, i, i});
        add(member, types);
    }
}

}  // namespace assay::data_references
