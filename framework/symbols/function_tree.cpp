#include "framework/symbols/function_tree.h"

#include "framework/symbols/line_table.h"

#include <dwarf.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::symbols {

namespace {

// Real programs nest a few dozen levels deep.
constexpr int kMaxDepth = 256;

}  // namespace

std::span<const Dwarf_Die> Children::of(Dwarf_Die parent) {
    auto [entry, is_new] = known_.try_emplace(parent.addr);
    if (is_new) read(parent, entry->second);
    return entry->second;
}

void Children::read(Dwarf_Die parent, std::vector<Dwarf_Die>& children) {
    auto [entry, is_new] = left_.try_emplace(parent.cu);
    std::uint64_t& left = entry->second;
    if (is_new) left = unit_bytes(parent);
    Dwarf_Die die;
    int status = dwarf_child(&parent, &die);
    for (; status == 0 && left > 0; --left) {
        // A broken DW_AT_sibling might point backwards.
        if (!children.empty() && die.addr <= children.back().addr) return;
        dwarf_tag(&die);  // libdw stores the abbreviation in `die` for later calls
        children.push_back(die);
        status = dwarf_siblingof(&die, &die);
    }
}

namespace {

constexpr int kMaxReferences = 16;

// Follows abstract origins and specifications to the declaration of the function.
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

// The entries that enclose `die`, outermost first. Entries have no link to their parent, but are
// stored in the order of a walk through the tree. At each level, the last entry that starts before
// `die` therefore encloses it.
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

constexpr std::string_view kGccLambda = "<lambda";

// True for the type of a lambda. gcc names only its destructor after the lambda.
bool is_lambda(Dwarf_Die type, Children& children) {
    const std::span<const Dwarf_Die> members = children.of(type);
    return std::any_of(members.begin(), members.end(), [](Dwarf_Die member) {
        const char* const name = dwarf_diename(&member);
        return name != nullptr && std::string_view(name).find(kGccLambda) != std::string_view::npos;
    });
}

// A name from the place in the source: "{lambda at file.cpp:7:14}".
std::string unnamed_type(Dwarf_Die type, Children& children) {
    const std::string kind = is_lambda(type, children) ? "lambda" : "unnamed type";
    const char* const file = dwarf_decl_file(&type);
    int line = 0, column = 0;
    if (file == nullptr || dwarf_decl_line(&type, &line) != 0) return "{" + kind + "}";
    const std::string_view path(file);
    std::string place(path.substr(path.rfind('/') + 1));
    place += ":" + std::to_string(line);
    if (dwarf_decl_column(&type, &column) == 0) place += ":" + std::to_string(column);
    return "{" + kind + " at " + place + "}";
}

// Adds the lambdas among the arguments of a template, in the order of the template's name.
void add_lambdas(Dwarf_Die instance, Children& children, int depth, std::vector<Dwarf_Die>& to) {
    constexpr int kDeepest = 8;
    constexpr std::size_t kMost = 64;
    for (Dwarf_Die argument : children.of(instance)) {
        Dwarf_Die type;
        Dwarf_Attribute attribute;
        if (dwarf_tag(&argument) == DW_TAG_GNU_template_parameter_pack && depth < kDeepest) {
            add_lambdas(argument, children, depth + 1, to);
            continue;
        }
        if (dwarf_tag(&argument) != DW_TAG_template_type_parameter || to.size() > kMost ||
            dwarf_attr(&argument, DW_AT_type, &attribute) == nullptr)
            continue;
        const Dwarf_Die* found = dwarf_formref_die(&attribute, &type);
        for (int i = 0; i < kMaxReferences && found != nullptr; ++i) {
            const int tag = dwarf_tag(&type);
            if (tag == DW_TAG_structure_type || tag == DW_TAG_class_type) break;
            found = dwarf_attr(&type, DW_AT_type, &attribute) != nullptr
                        ? dwarf_formref_die(&attribute, &type)
                        : nullptr;
        }
        if (found == nullptr) continue;
        if (dwarf_diename(&type) == nullptr && is_lambda(type, children))
            to.push_back(type);
        else if (depth < kDeepest)
            add_lambdas(type, children, depth + 1, to);
    }
}

// The end of "<lambda(int)>" that starts at `begin`.
std::size_t end_of_lambda(std::string_view name, std::size_t begin) {
    int depth = 0;
    for (std::size_t i = begin; i < name.size(); ++i) {
        if (name[i] == '(' || name[i] == '<') ++depth;
        if ((name[i] == ')' || name[i] == '>') && --depth == 0) return i + 1;
    }
    return std::string_view::npos;
}

// Adds the place of each lambda to a name. gcc gives the same name, "f<main()::<lambda(int)> >", to
// all instances of a template for lambdas with the same parameters.
std::string with_places_of_lambdas(std::string_view name, Dwarf_Die function, Children& children) {
    if (name.find(kGccLambda) == std::string_view::npos) return std::string(name);
    std::vector<Dwarf_Die> lambdas;
    add_lambdas(function, children, 0, lambdas);
    std::string result;
    std::size_t used = 0, from = 0;
    for (std::size_t at = name.find(kGccLambda); at != std::string_view::npos;
         at = name.find(kGccLambda, from)) {
        const std::size_t end = end_of_lambda(name, at);
        if (end == std::string_view::npos || used == lambdas.size()) return std::string(name);
        result += name.substr(from, at - from);
        result += unnamed_type(lambdas[used++], children);
        from = end;
    }
    // The name has more or fewer lambdas than the arguments, so they cannot be matched.
    if (used != lambdas.size()) return std::string(name);
    return result.append(name.substr(from));
}

std::string scope_name(Dwarf_Die* scope, Children& children) {
    const char* name = dwarf_diename(scope);
    switch (dwarf_tag(scope)) {
        case DW_TAG_namespace:
            return name != nullptr ? name : "(anonymous namespace)";
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_interface_type:
        case DW_TAG_module:
            return name != nullptr ? name : unnamed_type(*scope, children);
        case DW_TAG_subprogram:
            return name != nullptr ? with_places_of_lambdas(name, *scope, children)
                                   : "{unnamed function}";
        default:  // lexical blocks and the like
            return {};
    }
}

// The namespaces, classes and functions around `die`, each followed by "::".
std::string scopes_of(Dwarf_Die die, Children& children, int depth = 0) {
    constexpr int kDeepestFunction = 8;
    std::vector<Dwarf_Die> scopes = enclosing(declaration_of(die), children);
    std::string qualified;
    // A function can be defined outside of the namespace that declares it.
    const auto innermost = std::find_if(scopes.rbegin(), scopes.rend(), [](Dwarf_Die& scope) {
        return dwarf_tag(&scope) == DW_TAG_subprogram;
    });
    auto from = scopes.begin();
    if (innermost != scopes.rend() && depth < kDeepestFunction) {
        qualified = scopes_of(*innermost, children, depth + 1);
        from = std::prev(innermost.base());
    }
    for (; from != scopes.end(); ++from) {
        const std::string part = scope_name(&*from, children);
        if (!part.empty()) qualified += part + "::";
    }
    return qualified;
}

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
    // Rust puts methods inside of their types. Nested functions are inside of functions that may
    // not have been executed.
    if (!covers_all_addresses()) {
        everywhere_ = true;
        walk();
    }
}

void FunctionTree::walk() {
    nodes_.clear();
    map_ = {};
    // Links in broken files can form circles.
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

// Returns kNone for functions without code, and for functions that contain no address, unless they
// are inlined into a function in the tree.
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
    Dwarf_Die* const die = &nodes_[function].die;
    Dwarf_Attribute attribute;
    for (unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
        const char* name = dwarf_formstring(dwarf_attr_integrate(die, kind, &attribute));
        if (name != nullptr) return name;
    }
    const char* name = dwarf_diename(die);
    if (name == nullptr) return {};
    const Dwarf_Die declared = declaration_of(*die);
    return scopes_of(declared, children_) + with_places_of_lambdas(name, declared, children_);
}

}  // namespace assay::symbols
