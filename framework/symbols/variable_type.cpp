#include "framework/symbols/variable_type.h"

#include "framework/symbols/data_types.h"

#include <dwarf.h>

#include <optional>
#include <vector>

namespace assay::symbols {

namespace {

constexpr int kMostReferences = 64;  // from a type to what it is an array, or another name, of
constexpr std::size_t kLongestName = 1000;

std::optional<Dwarf_Die> type_of(Dwarf_Die die) {
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    if (dwarf_formref_die(dwarf_attr_integrate(&die, DW_AT_type, &attribute), &type) == nullptr)
        return std::nullopt;
    return type;
}

// Of each dimension of an array; 0 where it is not known.
std::vector<std::uint64_t> element_counts(Dwarf_Die array) {
    std::vector<std::uint64_t> counts;
    Dwarf_Die child;
    int status = dwarf_child(&array, &child);
    for (int i = 0; status == 0 && i < kMostReferences; ++i) {
        if (dwarf_tag(&child) == DW_TAG_subrange_type) {
            std::optional<std::uint64_t> count = number(child, DW_AT_count);
            if (!count) {
                count = number(child, DW_AT_upper_bound);
                if (count) ++*count;
            }
            counts.push_back(count.value_or(0));
        }
        status = dwarf_siblingof(&child, &child);
    }
    return counts;
}

bool is_pointer(int tag) {
    return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
           tag == DW_TAG_rvalue_reference_type;
}

// An array and its elements can both be said to be constant.
std::string qualified(const std::string& type, const std::string& qualifier) {
    if (type.ends_with('*')) return type + qualifier;
    return type.starts_with(qualifier + " ") ? type : qualifier + " " + type;
}

std::string type_name(const std::optional<Dwarf_Die>& type, int depth) {
    if (!type) return "void";
    Dwarf_Die die = *type;
    if (const char* name = dwarf_diename(&die)) return std::string(name).substr(0, kLongestName);
    if (depth == kMostReferences) return "?";
    const auto inner = [&] { return type_name(type_of(die), depth + 1); };
    const auto pointer = [](const std::string& to, const char* sign) {
        return to + (to.ends_with('*') ? "" : " ") + sign;
    };
    switch (dwarf_tag(&die)) {
        case DW_TAG_pointer_type:
            return pointer(inner(), "*");
        case DW_TAG_reference_type:
            return pointer(inner(), "&");
        case DW_TAG_rvalue_reference_type:
            return pointer(inner(), "&&");
        case DW_TAG_const_type:
            return qualified(inner(), "const");
        case DW_TAG_volatile_type:
            return qualified(inner(), "volatile");
        case DW_TAG_array_type: {
            std::string name = inner();
            for (const std::uint64_t count : element_counts(die))
                name += "[" + (count != 0 ? std::to_string(count) : "") + "]";
            return name;
        }
        case DW_TAG_structure_type:
            return "struct";
        case DW_TAG_class_type:
            return "class";
        case DW_TAG_union_type:
            return "union";
        case DW_TAG_enumeration_type:
            return "enum";
        case DW_TAG_subroutine_type:
            return "function";
        default:
            return inner();
    }
}

}  // namespace

// (libdw's own function does not return from types that refer to one another in circles.)
std::uint64_t variable_size(Dwarf_Die variable) {
    std::uint64_t count = 1;
    Dwarf_Die at = variable;
    for (int i = 0; i < kMostReferences; ++i) {
        const std::optional<Dwarf_Die> type = type_of(at);
        if (!type) return 0;
        at = *type;
        const int tag = dwarf_tag(&at);
        std::uint64_t bytes =
            number(at, DW_AT_byte_size).value_or(is_pointer(tag) ? sizeof(void*) : 0);
        if (bytes != 0) return __builtin_mul_overflow(count, bytes, &bytes) ? 0 : bytes;
        if (tag != DW_TAG_array_type) continue;
        for (const std::uint64_t elements : element_counts(at))
            if (__builtin_mul_overflow(count, elements, &count)) return 0;
    }
    return 0;
}

std::string variable_type(Dwarf_Die variable) {
    const std::optional<Dwarf_Die> type = type_of(variable);
    return type ? type_name(type, 0) : std::string();
}

}  // namespace assay::symbols
