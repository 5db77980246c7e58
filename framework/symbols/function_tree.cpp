#include "framework/symbols/function_tree.h"

#include "framework/symbols/dwarf_names.h"

#include <dwarf.h>

#include <algorithm>
#include <utility>

namespace assay::symbols {

namespace {

std::uint32_t unsigned_attribute(Dwarf_Die* die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    int status = dwarf_formudata(dwarf_attr(die, name, &attribute), &value);
    return status == 0 && value <= UINT32_MAX ? static_cast<std::uint32_t>(value) : 0;
}

}  // namespace

FunctionTree::FunctionTree(Dwarf_Die unit, std::span<const Address> addresses, Address code_start)
    : unit_(unit), addresses_(addresses), code_start_(code_start) {
    if (dwarf_getsrcfiles(&unit_, &files_, &file_count_) != 0) file_count_ = 0;
    walk();
    // Rust keeps methods inside of their types, and languages with nested functions keep these
    // inside of functions that need not have been executed themselves.
    if (!covers_all_addresses()) {
        everywhere_ = true;
        walk();
    }
}

void FunctionTree::walk() {
    nodes_.clear();
    map_ = {};
    // Broken entries could be linked so that a walk meets them again and again.
    visits_left_ = unit_bytes(unit_);
    visit_children(unit_, kNone, 0);
    map_.seal();
}

bool FunctionTree::covers_all_addresses() const {
    return std::all_of(addresses_.begin(), addresses_.end(),
                       [&](Address address) { return map_.find(address) != kNone; });
}

void FunctionTree::visit_children(Dwarf_Die parent, std::uint32_t function, int depth) {
    if (depth > kMaxDepth) return;
    for (const Dwarf_Die& die : children_.of(parent)) {
        if (visits_left_ == 0) return;
        --visits_left_;
        visit(die, function, depth);
    }
}

void FunctionTree::visit(Dwarf_Die die, std::uint32_t function, int depth) {
    switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram: {
            std::uint32_t added = add(&die, kNone);
            if (added != kNone || everywhere_) visit_children(die, added, depth + 1);
            break;
        }
        case DW_TAG_inlined_subroutine: {
            std::uint32_t added = function != kNone ? add(&die, function) : kNone;
            if (added != kNone) visit_children(die, added, depth + 1);
            break;
        }
        case DW_TAG_namespace:
        case DW_TAG_module:
            visit_children(die, kNone, depth + 1);
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
        case DW_TAG_with_stmt:
            visit_children(die, function, depth + 1);
            break;
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_enumeration_type:
            if (everywhere_) visit_children(die, kNone, depth + 1);
            break;
        default:
            break;
    }
}

// Returns kNone if the function does not matter: there is no code of it, or none of the addresses
// lies in it and it is not inlined into one that matters.
std::uint32_t FunctionTree::add(Dwarf_Die* die, std::uint32_t caller) {
    std::vector<std::pair<Address, Address>> ranges;
    bool matters = false;
    Dwarf_Addr base = 0, low = 0, high = 0;
    for (std::ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;) {
        if (low < code_start_) continue;
        ranges.emplace_back(low, high);
        matters = matters || caller != kNone || any_within(addresses_, low, high);
    }
    if (!matters) return kNone;
    auto index = static_cast<std::uint32_t>(nodes_.size());
    for (auto [from, to] : ranges) map_.add(from, to, index);
    nodes_.push_back({*die, caller});
    return index;
}

SourcePosition FunctionTree::call_site(std::uint32_t function) const {
    Dwarf_Die die = nodes_[function].die;
    std::uint32_t file = unsigned_attribute(&die, DW_AT_call_file);
    return {file < file_count_ ? dwarf_filesrc(files_, file, nullptr, nullptr) : nullptr,
            unsigned_attribute(&die, DW_AT_call_line)};
}

SourcePosition FunctionTree::declaration(std::uint32_t function) const {
    Dwarf_Die die = nodes_[function].die;
    int line = 0;
    if (dwarf_decl_line(&die, &line) != 0 || line < 0) line = 0;
    return {dwarf_decl_file(&die), static_cast<std::uint32_t>(line)};
}

std::string FunctionTree::name(std::uint32_t function) {
    return function_name(&nodes_[function].die, children_);
}

}  // namespace assay::symbols
