#include "plugins/opcode_mix/classify.h"

#include "plugins/opcode_mix/events.h"

#include <assay/text.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace opcode_mix {
namespace {

constexpr std::array<std::string_view, 14> kSingleOperations{
    "add",   "sub", "mul",  "div",  "sqrt",   "min",     "max",
    "rsqrt", "rcp", "hadd", "hsub", "addsub", "rsqrt14", "rcp14"};

// The operations for one element. `operation` is the mnemonic without VEX's and EVEX's v and
// without its type.
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

// General instructions are classified by XED's category. The categories of vector instructions are
// too coarse, so these are classified by their mnemonics, which are regular.

namespace {

using Names = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view name, Names names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool begins_with_one_of(std::string_view name, Names beginnings) {
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [name](std::string_view each) { return name.starts_with(each); });
}

// Extensions and categories that have one meaning for all registers.
constexpr std::array<std::pair<std::string_view, Event>, 50> kByCategory{{
    {"BINARY", kArith},   {"ADOX_ADCX", kArith},  {"DECIMAL", kArith},   {"DATAXFER", kDmov},
    {"CONVERT", kDmov},   {"MOVDIR", kDmov},      {"SEMAPHORE", kArith}, {"CMOV", kCmov},
    {"SETCC", kCmov},     {"LOGICAL", kLogic},    {"SHIFT", kShift},     {"ROTATE", kShift},
    {"BITBYTE", kBits},   {"LZCNT", kBits},       {"BMI1", kBits},       {"BMI2", kBits},
    {"TBM", kBits},       {"PUSH", kStk},         {"POP", kStk},         {"RET", kRet},
    {"COND_BR", kJcc},    {"X87_ALU", kX87},      {"FCMOV", kX87},       {"STRINGOP", kStr},
    {"IOSTRINGOP", kSys}, {"KMASK", kMask},       {"NOP", kNop},         {"WIDENOP", kNop},
    {"PREFETCH", kCach},  {"PREFETCHWT1", kCach}, {"CLFLUSHOPT", kCach}, {"CLWB", kCach},
    {"CLZERO", kCach},    {"CLDEMOTE", kCach},    {"SYSCALL", kSys},     {"SYSRET", kSys},
    {"SYSTEM", kSys},     {"INTERRUPT", kSys},    {"IO", kSys},          {"SEGOP", kSys},
    {"RDWRFSGS", kSys},   {"XSAVE", kSys},        {"XSAVEOPT", kSys},    {"RDPID", kSys},
    {"RDPRU", kSys},      {"RDRAND", kSys},       {"RDSEED", kSys},      {"PKU", kSys},
    {"WAITPKG", kSys},    {"SERIALIZE", kSys},
}};

Event by_category(std::string_view category) {
    const auto* const found =
        std::find_if(kByCategory.begin(), kByCategory.end(),
                     [category](const auto& each) { return each.first == category; });
    return found == kByCategory.end() ? kMisc : found->second;
}

bool is_cryptographic(const trace_instr_facts_t& facts) {
    return is_one_of(facts.category, {"AES", "VAES", "SHA", "SHA512", "PCLMULQDQ", "VPCLMULQDQ",
                                      "GFNI", "KEYLOCKER", "KEYLOCKER_WIDE", "PADLOCK"}) ||
           std::string_view(facts.mnemonic) == "crc32";
}

// For categories with several kinds of instructions.
std::optional<Event> by_mnemonic(std::string_view name) {
    if (name == "lea") return kLea;
    if (is_one_of(name, {"enter", "leave"})) return kStk;
    if (is_one_of(name, {"mfence", "lfence", "sfence"})) return kAtom;
    if (is_one_of(name, {"endbr64", "endbr32", "pause"})) return kNop;
    if (is_one_of(name, {"cmpxchg", "cmpxchg8b", "cmpxchg16b"})) return kCmov;
    if (is_one_of(name, {"mulx"})) return kArith;
    if (is_one_of(name, {"shlx", "shrx", "sarx", "rorx"})) return kShift;
    if (is_one_of(name, {"andn"})) return kLogic;
    if (is_one_of(name, {"popcnt", "lzcnt", "tzcnt"})) return kBits;
    if (name == "xlat") return kDmov;
    if (is_one_of(name, {"clflush"})) return kCach;
    if (is_one_of(name, {"cpuid", "rdtsc", "rdtscp", "ldmxcsr", "stmxcsr", "vldmxcsr", "vstmxcsr",
                         "fxsave", "fxsave64", "fxrstor", "fxrstor64"}))
        return kSys;
    return std::nullopt;
}

// `name` has no leading v from VEX or EVEX.
Event part_of_packed(const trace_instr_facts_t& facts, std::string_view name) {
    if (is_one_of(facts.category, {"GATHER", "AVX2GATHER", "SCATTER"})) return kVmem;
    // Must come before moves and comparisons, because the names begin with theirs.
    if (begins_with_one_of(
            name,
            {"movddup",  "movshdup", "movsldup",  "pshuf",   "shuf",  "perm",      "pperm",
             "unpck",    "punpck",   "pack",      "palign",  "align", "blend",     "pblend",
             "insert",   "extract",  "extr",      "pinsr",   "pextr", "broadcast", "pbroadcast",
             "compress", "expand",   "pcompress", "pexpand", "pswap"}))
        return kVshuf;
    if (begins_with_one_of(name, {"cvt", "pmovzx", "pmovsx"})) return kVcvt;
    if (begins_with_one_of(name, {"mov", "lddqu", "maskmov", "pmaskmov", "pmovmskb"})) return kVmov;
    if (begins_with_one_of(name, {"pmov", "pf2i", "pi2f"})) return kVcvt;
    if (begins_with_one_of(
            name, {"cmp", "pcmp", "comi", "ucomi", "com", "pcom", "ptest", "test", "fpclass"}))
        return kVcmp;
    if (begins_with_one_of(name, {"and", "or", "xor", "pand", "por", "pxor", "ptern", "pcmov"}))
        return kVlog;
    if (begins_with_one_of(name, {"psll", "psrl", "psra", "prol", "pror", "prot", "psha", "pshl",
                                  "pshr", "pmultishift"}))
        return kVsh;
    const bool is_float =
        facts.element_type == TRACE_ELEMENT_FLOAT || begins_with_one_of(name, {"round", "pf"});
    return is_float ? kVfp : kVint;
}

Event part_of_scalar(std::string_view name) {
    if (name.starts_with("cvt")) return kFcvt;
    return name.starts_with("mov") ? kFmov : kFop;
}

Event part_of_branch(std::string_view category, std::uint32_t flags) {
    const bool indirect = (flags & TRACE_INSTR_INDIRECT) != 0;
    if (category == "CALL") return indirect ? kIcall : kCall;
    return indirect ? kIjmp : kJmp;
}

}  // namespace

Event part_of(const trace_instr_facts_t& facts, std::uint32_t flags) {
    const std::string_view category = facts.category;
    if (facts.flags & TRACE_FACT_LOCKED) return kAtom;
    if (is_cryptographic(facts)) return kCryp;
    if (is_one_of(category, {"CALL", "UNCOND_BR"})) return part_of_branch(category, flags);
    std::string_view name = facts.mnemonic;
    if (facts.vector_bits == 0) return by_mnemonic(name).value_or(by_category(category));
    if (name.starts_with('v')) name.remove_prefix(1);
    return facts.elements == 1 ? part_of_scalar(name) : part_of_packed(facts, name);
}

Event group_of(Event part) {
    if (part == kStk) return kStk;
    if (part < kArith) return kMov;
    if (part < kJcc) return kInt;
    if (part < kFmov) return kCtl;
    if (part < kVmov) return kFp;
    return part < kStr ? kVec : kOth;
}

std::optional<Event> width_of(const trace_instr_facts_t& facts) {
    switch (facts.vector_bits) {
        case 64:
            return kW64;
        case 128:
            return facts.elements == 1 ? kWs : kW128;
        case 256:
            return kW256;
        case 512:
            return kW512;
        default:
            return std::nullopt;
    }
}

std::optional<Event> set_of(const trace_instr_facts_t& facts) {
    const std::string_view extension = facts.extension;
    if (is_one_of(extension, {"AVX512EVEX", "AVX512VEX"})) return kAvx512;
    if (is_one_of(extension, {"FMA", "FMA4"})) return kFma;
    if (is_one_of(extension, {"AVX2", "AVX2GATHER"})) return kAvx2;
    if (is_one_of(extension, {"AVX", "F16C", "AVXAES"})) return kAvx;
    const bool is_sse = is_one_of(extension, {"SSE", "SSE2", "SSE3", "SSSE3", "SSE4", "SSE4A"});
    if (is_sse && facts.vector_bits != 0) return kSse;
    return std::nullopt;
}

namespace {

using assay::percent;
using assay::right;
using assay::with_commas;

constexpr std::size_t kLabel = 24, kNumber = 20, kShare = 9;

std::string left(std::string_view text, std::size_t width) {
    std::string padded(text);
    padded.resize(std::max(width, text.size() + 1), ' ');
    return padded;
}

std::string row(std::string_view label, std::uint64_t count, std::uint64_t all) {
    return left(label, kLabel) + right(with_commas(count), kNumber) +
           right(percent(count, all, 1), kShare) + "\n";
}

std::string quotient(std::string_view label, std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return {};
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3f",
                  static_cast<double>(part) / static_cast<double>(whole));
    return left(label, kLabel) + right(text.data(), kNumber) + "\n";
}

constexpr std::array<std::pair<Event, const char*>, 7> kGroups{{
    {kMov, "moves"},
    {kInt, "integer"},
    {kCtl, "control"},
    {kStk, "stack"},
    {kFp, "scalar floating point"},
    {kVec, "vector"},
    {kOth, "other"},
}};

}  // namespace

std::string summarise(std::span<const std::uint64_t> totals, const std::vector<Opcode>& opcodes) {
    const std::uint64_t all = totals[kIr], moved = totals[kLdB] + totals[kStB];
    std::string text = left("instructions", kLabel) + right(with_commas(all), kNumber) + "\n";
    for (const auto& [event, label] : kGroups)
        text += row(std::string("  ") + label, totals[event], all);
    text += left("bytes read", kLabel) + right(with_commas(totals[kLdB]), kNumber) + "\n" +
            left("bytes written", kLabel) + right(with_commas(totals[kStB]), kNumber) + "\n" +
            left("flops", kLabel) + right(with_commas(totals[kFlops]), kNumber) + "\n" +
            quotient("flops per instruction", totals[kFlops], all) +
            quotient("flops per byte", totals[kFlops], moved);
    if (opcodes.empty()) return text;
    text += "\nmost frequent opcodes\n";
    for (const Opcode& opcode : opcodes)
        text += row("  " + std::string(opcode.mnemonic), opcode.executions, all);
    return text;
}

std::string in_one_line(const std::vector<Opcode>& opcodes, std::uint64_t instructions) {
    std::string text;
    for (const Opcode& opcode : opcodes) {
        if (!text.empty()) text += ", ";
        text += std::string(opcode.mnemonic) + " " + percent(opcode.executions, instructions, 1);
    }
    return text;
}

}  // namespace opcode_mix
