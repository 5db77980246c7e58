#include "framework/symbols/dwarf_names.h"

#include <dwarf.h>

#include <algorithm>
#include <span>
#include <vector>

namespace assay::symbols {

namespace {

constexpr int kMaxReferences = 16;

// What declares the function: where its abstract instance and its specification lead to.
Dwarf_Die declaration_of(Dwarf_Die die) {
    for (int i = 0; i < kMaxReferences; ++i) {
        Dwarf_Attribute attribute;
        Dwarf_Die target;
        if (dwarf_attr(&die, DW_AT_abstract_origin, &attribute) == nullptr &&
            dwarf_attr(&die, DW_AT_specification, &attribute) == nullptr) {
            break;
        }
        if (dwarf_formref_die(&attribute, &target) == nullptr) break;
        die = target;
    }
    return die;
}

// The entries that enclose `die`, outermost first. Entries have no link to their parent, but
// stand in the order of a walk through the tree, so each level's last entry that does not start
// behind `die` encloses it.
std::vector<Dwarf_Die> enclosing(Dwarf_Die die, Children& children) {
    std::vector<Dwarf_Die> path;
    Dwarf_Die at;
    if (dwarf_diecu(&die, &at, nullptr, nullptr) == nullptr) return path;
    while (path.size() < kMaxDepth) {
        const std::span level = children.of(at);
        auto next = std::upper_bound(
            level.begin(), level.end(), die,
            [](const Dwarf_Die& a, const Dwarf_Die& b) { return a.addr < b.addr; });
        if (next == level.begin()) break;
        at = *std::prev(next);
        if (at.addr == die.addr) break;
        path.push_back(at);
    }
    return path;
}

std::string scope_name(Dwarf_Die* scope) {
    const char* name = dwarf_diename(scope);
    switch (dwarf_tag(scope)) {
        case DW_TAG_namespace:
            return name != nullptr ? name : "(anonymous namespace)";
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_interface_type:
        case DW_TAG_module:
        case DW_TAG_subprogram:
            return name != nullptr ? name : "{unnamed type}";
        default:  // lexical blocks and the like
            return {};
    }
}

}  // namespace

std::string function_name(Dwarf_Die* function, Children& children) {
    Dwarf_Attribute attribute;
    for (unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
        const char* name = dwarf_formstring(dwarf_attr_integrate(function, kind, &attribute));
        if (name != nullptr) return name;
    }
    const char* name = dwarf_diename(function);
    if (name == nullptr) return {};
    std::string qualified;
    for (Dwarf_Die& scope : enclosing(declaration_of(*function), children)) {
        std::string part = scope_name(&scope);
        if (!part.empty()) qualified += part + "::";
    }
    return qualified + name;
}

}  // namespace assay::symbols
