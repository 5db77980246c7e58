#include "framework/symbols/dwarf_names.h"

#include "framework/symbols/dwarf_walk.h"

#include <dwarf.h>

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
std::vector<Dwarf_Die> enclosing(Dwarf_Die* die) {
    std::vector<Dwarf_Die> path;
    Dwarf_Off offset = dwarf_dieoffset(die);
    Dwarf_Die unit, child;
    if (dwarf_diecu(die, &unit, nullptr, nullptr) == nullptr) return path;
    for (Dwarf_Die at = unit; path.size() < kMaxDepth && first_child(&at, &child);) {
        at = child;
        while (next_sibling(&child) && dwarf_dieoffset(&child) <= offset) at = child;
        if (dwarf_dieoffset(&at) >= offset) break;
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

std::string function_name(Dwarf_Die* function) {
    Dwarf_Attribute attribute;
    for (unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
        const char* name = dwarf_formstring(dwarf_attr_integrate(function, kind, &attribute));
        if (name != nullptr) return name;
    }
    const char* name = dwarf_diename(function);
    if (name == nullptr) return {};
    std::string qualified;
    Dwarf_Die declaration = declaration_of(*function);
    for (Dwarf_Die& scope : enclosing(&declaration)) {
        std::string part = scope_name(&scope);
        if (!part.empty()) qualified += part + "::";
    }
    return qualified + name;
}

}  // namespace assay::symbols
