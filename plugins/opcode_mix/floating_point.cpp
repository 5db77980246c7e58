#include "plugins/opcode_mix/floating_point.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace opcode_mix {
namespace {

constexpr std::array<std::string_view, 14> kSingleOperations{
    "add",   "sub", "mul",  "div",  "sqrt",   "min",     "max",
    "rsqrt", "rcp", "hadd", "hsub", "addsub", "rsqrt14", "rcp14"};

// What an element counts, by the mnemonic without the v of VEX and EVEX, and without its type.
unsigned per_element(std::string_view operation) {
    if (operation == "dpbf16") return 4;
    if (operation == "dp") return 2;
    const bool multiplies_and_adds =
        operation.starts_with("fmadd") || operation.starts_with("fmsub") ||
        operation.starts_with("fnmadd") || operation.starts_with("fnmsub");
    if (operation == "fmaddc" || operation == "fcmaddc") return 8;
    if (operation == "fmulc" || operation == "fcmulc") return 6;
    if (multiplies_and_adds) return 2;
    return std::find(kSingleOperations.begin(), kSingleOperations.end(), operation) !=
                   kSingleOperations.end()
               ? 1
               : 0;
}

bool is_x87_operation(std::string_view mnemonic) {
    constexpr std::array<std::string_view, 19> kOperations{
        "fadd",  "faddp", "fiadd", "fsub",  "fsubp", "fsubr",  "fsubrp", "fisub",  "fisubr", "fmul",
        "fmulp", "fimul", "fdiv",  "fdivp", "fdivr", "fdivrp", "fidiv",  "fidivr", "fsqrt"};
    return std::find(kOperations.begin(), kOperations.end(), mnemonic) != kOperations.end();
}

Event part_of(const trace_instr_facts_t& facts) {
    const bool is_double = facts.element_bits == 64;
    if (facts.elements == 1) return is_double ? kFlD1 : kFlS1;
    switch (facts.vector_bits) {
        case 512:
            return is_double ? kFlD8 : kFlS16;
        case 256:
            return is_double ? kFlD4 : kFlS8;
        default:
            return is_double ? kFlD2 : kFlS4;
    }
}

}  // namespace

Flops flops_of(const trace_instr_facts_t& facts) {
    std::string_view name = facts.mnemonic;
    if (facts.element_bits == 80) return {is_x87_operation(name) ? 1U : 0U, kFlX};
    if (facts.element_type != TRACE_ELEMENT_FLOAT) return {};
    constexpr std::size_t kType = 2;  // letters: ps, pd, ph, ss, sd, sh
    if (name.starts_with('v')) name.remove_prefix(1);
    if (name.size() <= kType) return {};
    const std::string_view type = name.substr(name.size() - kType);
    const unsigned each = per_element(name.substr(0, name.size() - kType));
    return {std::uint64_t{each} * facts.elements, type.back() == 'h' ? kFlH : part_of(facts)};
}

}  // namespace opcode_mix
