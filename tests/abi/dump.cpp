// Prints the binary interface that an object file was compiled with, from its DWARF: one line for
// each structure, member, enumerator, type and function whose name begins as those of assay's
// interface do. See README.md.
//
//     abi-dump FILE.o
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Lines = std::vector<std::string>;

std::string name_of(Dwarf_Die& die) {
    const char* const name = dwarf_diename(&die);
    return name ? name : "";
}

bool is_of_interface(std::string_view name) {
    for (const std::string_view prefix :
         {"trace_", "TRACE_", "vp_", "VP_", "vsample", "assay_", "ASSAY_"})
        if (name.starts_with(prefix)) return true;
    return false;
}

std::optional<Dwarf_Word> number(Dwarf_Die& die, unsigned attribute) {
    Dwarf_Attribute found;
    Dwarf_Word value = 0;
    if (!dwarf_attr(&die, attribute, &found)) return {};
    // Compilers give constants the smallest form: DW_FORM_data1 of -1 would be 255.
    Dwarf_Sword with_sign = 0;
    if (dwarf_whatform(&found) == DW_FORM_sdata && dwarf_formsdata(&found, &with_sign) == 0)
        return static_cast<Dwarf_Word>(with_sign);
    if (dwarf_formudata(&found, &value) == 0) return value;
    return {};
}

template <typename Visit>
void for_each_child(Dwarf_Die& parent, int tag, const Visit& visit) {
    Dwarf_Die child;
    if (dwarf_child(&parent, &child) != 0) return;
    do {
        if (dwarf_tag(&child) == tag) visit(child);
    } while (dwarf_siblingof(&child, &child) == 0);
}

std::string type_of(Dwarf_Die& die);

std::string parameters(Dwarf_Die& function) {
    std::string all;
    for_each_child(function, DW_TAG_formal_parameter, [&](Dwarf_Die& parameter) {
        all += (all.empty() ? "" : ", ") + type_of(parameter);
    });
    return "(" + (all.empty() ? "void" : all) + ")";
}

std::string type_name(Dwarf_Die& type) {
    switch (dwarf_tag(&type)) {
        case DW_TAG_pointer_type:
            return type_of(type) + "*";
        case DW_TAG_const_type:
            return "const " + type_of(type);
        case DW_TAG_array_type: {
            std::string bounds;
            for_each_child(type, DW_TAG_subrange_type, [&](Dwarf_Die& range) {
                const auto last = number(range, DW_AT_upper_bound);
                const auto count = number(range, DW_AT_count);
                bounds += fmt::format("[{}]", count ? *count : last.value_or(0) + 1);
            });
            return type_of(type) + bounds;
        }
        case DW_TAG_subroutine_type:
            return type_of(type) + parameters(type);
        case DW_TAG_structure_type:
            return "struct " + name_of(type);
        case DW_TAG_enumeration_type:
            return "enum " + name_of(type);
        default:
            return name_of(type);
    }
}

std::string type_of(Dwarf_Die& die) {
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    if (!dwarf_attr(&die, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &type))
        return "void";
    return type_name(type);
}

void dump_structure(Dwarf_Die& structure, Lines& lines) {
    const std::string name = name_of(structure);
    const auto bytes = number(structure, DW_AT_byte_size);
    if (!is_of_interface(name) || !bytes) return;  // without a size: its layout is private
    lines.push_back(fmt::format("struct {}: {} bytes", name, *bytes));
    for_each_child(structure, DW_TAG_member, [&](Dwarf_Die& member) {
        lines.push_back(fmt::format("struct {} +{}: {} {}", name,
                                    number(member, DW_AT_data_member_location).value_or(0),
                                    type_of(member), name_of(member)));
    });
}

void dump_enumeration(Dwarf_Die& enumeration, Lines& lines) {
    for_each_child(enumeration, DW_TAG_enumerator, [&](Dwarf_Die& enumerator) {
        if (is_of_interface(name_of(enumerator)))
            lines.push_back(fmt::format("enumerator {} = {}", name_of(enumerator),
                                        number(enumerator, DW_AT_const_value).value_or(0)));
    });
}

void dump_typedef(Dwarf_Die& type, Lines& lines) {
    if (is_of_interface(name_of(type)))
        lines.push_back(fmt::format("type {}: {}", name_of(type), type_of(type)));
}

void dump_function(Dwarf_Die& function, Lines& lines) {
    if (is_of_interface(name_of(function)))
        lines.push_back(fmt::format("function {}: {}{}", name_of(function), type_of(function),
                                    parameters(function)));
}

Lines dump(Dwarf* dwarf) {
    Lines lines;
    Dwarf_Off offset = 0, next = 0;
    std::size_t header = 0;
    for (; dwarf_nextcu(dwarf, offset, &next, &header, nullptr, nullptr, nullptr) == 0;
         offset = next) {
        Dwarf_Die unit;
        if (!dwarf_offdie(dwarf, offset + header, &unit)) continue;
        for_each_child(unit, DW_TAG_structure_type,
                       [&](Dwarf_Die& d) { dump_structure(d, lines); });
        for_each_child(unit, DW_TAG_enumeration_type,
                       [&](Dwarf_Die& d) { dump_enumeration(d, lines); });
        for_each_child(unit, DW_TAG_typedef, [&](Dwarf_Die& d) { dump_typedef(d, lines); });
        for_each_child(unit, DW_TAG_subprogram, [&](Dwarf_Die& d) { dump_function(d, lines); });
    }
    return lines;
}

}  // namespace

int main(int argc, char** argv) {
    const int file = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    Dwarf* const dwarf = file < 0 ? nullptr : dwarf_begin(file, DWARF_C_READ);
    if (!dwarf) {
        fmt::print(stderr, "usage: abi-dump FILE.o, compiled with -g\n");
        return 1;
    }
    for (const std::string& line : dump(dwarf)) fmt::print("{}\n", line);
    dwarf_end(dwarf);
    close(file);
}
