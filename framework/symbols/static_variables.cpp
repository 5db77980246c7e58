#include "framework/symbols/static_variables.h"

#include "framework/symbols/data_types.h"
#include "framework/symbols/line_table.h"

#include <dwarf.h>
#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace assay::symbols {
namespace {

constexpr int kMostReferences = 64;  // between types, such as from an array to its elements
constexpr std::size_t kLongestName = 1000;

bool is_pointer(int tag) {
    return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
           tag == DW_TAG_rvalue_reference_type;
}

// Both an array and its elements can have the qualifier.
std::string qualified(const std::string& type, const std::string& qualifier) {
    if (type.ends_with('*')) return type + qualifier;
    return type.starts_with(qualifier + " ") ? type : qualifier + " " + type;
}

std::string type_name(const std::optional<Dwarf_Die>& type, int depth) {
    if (!type) return "void";
    Dwarf_Die die = *type;
    if (const char* name = dwarf_diename(&die)) return std::string(name).substr(0, kLongestName);
    if (depth == kMostReferences) return "?";
    const auto inner = [&] { return type_name(referred_type(die), depth + 1); };
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

// libdw's function does not return if types refer to one another in circles.
std::uint64_t variable_size(Dwarf_Die variable) {
    std::uint64_t count = 1;
    Dwarf_Die at = variable;
    for (int i = 0; i < kMostReferences; ++i) {
        const std::optional<Dwarf_Die> type = referred_type(at);
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
    const std::optional<Dwarf_Die> type = referred_type(variable);
    return type ? type_name(type, 0) : std::string();
}

namespace {

constexpr int kDeepestEntry = 256;

struct Place {
    Address address;
    bool is_thread_local;
    bool is_indexed = false;  // in .debug_addr
};

// The value in .debug_addr that an operation refers to.
std::optional<Dwarf_Word> indexed_address(Dwarf_Attribute& location, const Dwarf_Op& operation) {
    Dwarf_Attribute indexed;
    Dwarf_Word value = 0;
    if (dwarf_getlocation_attr(&location, &operation, &indexed) != 0 ||
        (dwarf_formaddr(&indexed, &value) != 0 && dwarf_formudata(&indexed, &value) != 0))
        return std::nullopt;
    return value;
}

std::optional<Place> place_of(Dwarf_Die variable) {
    Dwarf_Attribute location;
    Dwarf_Op* operation = nullptr;
    std::size_t count = 0;
    if (dwarf_attr(&variable, DW_AT_location, &location) == nullptr ||
        dwarf_whatform(&location) == DW_FORM_sec_offset ||
        dwarf_getlocation(&location, &operation, &count) != 0 || count == 0 || count > 2)
        return std::nullopt;
    std::optional<Dwarf_Word> value;
    switch (operation->atom) {
        case DW_OP_addr:
        case DW_OP_const4u:
        case DW_OP_const8u:
            value = operation->number;
            break;
        case DW_OP_addrx:
        case DW_OP_constx:
        case DW_OP_GNU_addr_index:
        case DW_OP_GNU_const_index:
            value = indexed_address(location, *operation);
            break;
        default:
            break;
    }
    if (!value) return std::nullopt;
    const bool is_address = operation->atom == DW_OP_addr || operation->atom == DW_OP_addrx ||
                            operation->atom == DW_OP_GNU_addr_index;
    if (count == 1) return is_address ? std::optional(Place{*value, false}) : std::nullopt;
    if (operation[1].atom == DW_OP_form_tls_address ||
        operation[1].atom == DW_OP_GNU_push_tls_address)
        return Place{*value, true,
                     operation->atom != DW_OP_const4u && operation->atom != DW_OP_const8u};
    return std::nullopt;
}

class Reader {
  public:
    explicit Reader(std::pair<Address, Address> thread_locals) : thread_locals_(thread_locals) {}
    void read_unit(Dwarf_Die unit) {
        left_ = unit_bytes(unit);
        read_children(unit, {}, 0);
    }
    std::vector<StaticVariable> take();

  private:
    void read_children(Dwarf_Die parent, const char* function, int depth);
    void read(Dwarf_Die variable, const char* function);

    std::pair<Address, Address> thread_locals_;
    // Limit for entries, because links in broken files can form circles.
    std::uint64_t left_ = 0;
    std::vector<StaticVariable> variables_;
};

void Reader::read_children(Dwarf_Die parent, const char* function, int depth) {
    if (depth > kDeepestEntry) return;
    Dwarf_Die die;
    const void* before = parent.addr;
    for (int status = dwarf_child(&parent, &die); status == 0 && die.addr > before && left_ > 0;
         status = dwarf_siblingof(&die, &die)) {
        before = die.addr;
        --left_;
        switch (dwarf_tag(&die)) {
            case DW_TAG_variable:
                read(die, function);
                break;
            case DW_TAG_subprogram: {
                const char* name = dwarf_haschildren(&die) > 0 ? dwarf_diename(&die) : nullptr;
                read_children(die, name, depth + 1);
                break;
            }
            case DW_TAG_namespace:
            case DW_TAG_module:
            case DW_TAG_lexical_block:
            case DW_TAG_try_block:
            case DW_TAG_catch_block:
                read_children(die, function, depth + 1);
                break;
            default:
                break;
        }
    }
}

void Reader::read(Dwarf_Die variable, const char* function) {
    std::optional<Place> place = place_of(variable);
    if (!place) return;
    const auto [first, end] = thread_locals_;
    if (place->is_thread_local && place->is_indexed && place->address >= first &&
        place->address < end)
        place->address -= first;
    const char* name = dwarf_diename(&variable);
    if (name == nullptr || *name == '\0') return;
    variables_.push_back({place->address, place->is_thread_local, variable_size(variable), name,
                          function != nullptr ? function : "", variable_type(variable)});
}

std::vector<StaticVariable> Reader::take() {
    const auto key = [](const StaticVariable& variable) {
        return std::tie(variable.is_thread_local, variable.address, variable.name,
                        variable.function, variable.type);
    };
    std::sort(variables_.begin(), variables_.end(),
              [&](const StaticVariable& a, const StaticVariable& b) { return key(a) < key(b); });
    return std::move(variables_);
}

}  // namespace

std::vector<StaticVariable> read_static_variables(Dwarf* dwarf,
                                                  std::pair<Address, Address> thread_locals) {
    Reader reader(thread_locals);
    Dwarf_Off next = 0;
    std::size_t header_bytes = 0;
    for (Dwarf_Off at = 0;
         dwarf_nextcu(dwarf, at, &next, &header_bytes, nullptr, nullptr, nullptr) == 0 && next > at;
         at = next) {
        Dwarf_Die die;
        if (dwarf_offdie(dwarf, at + header_bytes, &die) != nullptr)
            reader.read_unit(split_unit(die));
    }
    return reader.take();
}

}  // namespace assay::symbols
