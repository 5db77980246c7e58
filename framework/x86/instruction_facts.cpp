#include "framework/x86/instruction_facts.h"

#include "framework/x86/make_form.h"

#include <Zydis/Zydis.h>
#include <algorithm>
#include <array>
#include <string_view>

namespace assay::native {
namespace {

using Operands = std::span<const ZydisDecodedOperand>;

const ZydisDecoder& decoder() {
    static const ZydisDecoder decoder = [] {
        ZydisDecoder made;
        ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        return made;
    }();
    return decoder;
}

// The size of a vector register; 0 for any other operand.
unsigned vector_bits_of(const ZydisDecodedOperand& operand) {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return 0;
    switch (ZydisRegisterGetClass(operand.reg.value)) {
        case ZYDIS_REGCLASS_MMX:
            return 64;
        case ZYDIS_REGCLASS_XMM:
            return 128;
        case ZYDIS_REGCLASS_YMM:
            return 256;
        case ZYDIS_REGCLASS_ZMM:
            return 512;
        default:
            return 0;
    }
}

bool is_float(const ZydisDecodedOperand& operand) {
    switch (operand.element_type) {
        case ZYDIS_ELEMENT_TYPE_FLOAT16:
        case ZYDIS_ELEMENT_TYPE_FLOAT32:
        case ZYDIS_ELEMENT_TYPE_FLOAT64:
            return true;
        default:
            return false;
    }
}

bool is_x87(const ZydisDecodedInstruction& zydis) {
    return zydis.meta.isa_ext == ZYDIS_ISA_EXT_X87;
}

// For most scalar instructions, Zydis reports the whole register as the operand, so this goes by
// names. The name ends in ss, sd or sh (single, double, half); conversions have these letters
// before or after the 2. Integer instructions such as psadbw begin with p. Broadcasts write all
// elements.
bool is_scalar(const ZydisDecodedInstruction& zydis) {
    std::string_view name = ZydisMnemonicGetString(zydis.mnemonic);
    if (name.starts_with('v')) name.remove_prefix(1);
    if (name.starts_with('p') || name.starts_with("broadcast")) return false;
    for (const std::string_view kind : {"ss", "sd", "sh"})
        if (name.ends_with(kind)) return true;
    constexpr std::array<std::string_view, 3> kConversions{"ss2", "sd2", "sh2"};
    return std::any_of(kConversions.begin(), kConversions.end(), [&](std::string_view part) {
        return name.find(part) != std::string_view::npos;
    });
}

// The operand that tells what the instruction computes with: the first vector of floating-point
// numbers, or else the first vector. The instruction must have a vector operand.
const ZydisDecodedOperand& computed_operand(Operands operands) {
    const auto is_vector = [](const ZydisDecodedOperand& operand) {
        return vector_bits_of(operand) != 0;
    };
    const auto found = std::find_if(operands.begin(), operands.end(), [&](const auto& operand) {
        return is_vector(operand) && is_float(operand);
    });
    return found != operands.end() ? *found
                                   : *std::find_if(operands.begin(), operands.end(), is_vector);
}

void note_elements(trace_instr_facts_t& facts, const ZydisDecodedInstruction& zydis,
                   Operands operands) {
    if (is_x87(zydis)) {
        facts.element_type = TRACE_ELEMENT_FLOAT;
        facts.element_bits = 80;
        facts.elements = 1;
        return;
    }
    if (facts.vector_bits == 0) return;
    const ZydisDecodedOperand& computed = computed_operand(operands);
    if (computed.element_size == 0) return;
    facts.element_type = is_float(computed) ? TRACE_ELEMENT_FLOAT : TRACE_ELEMENT_INTEGER;
    // For logic and MMX, Zydis reports whole registers as elements. They count as two halves,
    // because 1 element means scalar.
    facts.element_bits = is_scalar(zydis)
                             ? computed.element_size
                             : std::min<unsigned>(computed.element_size, computed.size / 2U);
    facts.elements = is_scalar(zydis) ? 1 : computed.size / facts.element_bits;
}

// SDM volume 2, XCHG: with a memory operand it is locked even without the prefix.
bool is_locked(const ZydisDecodedInstruction& zydis, const Form& form) {
    return zydis.attributes & ZYDIS_ATTRIB_HAS_LOCK ||
           (zydis.mnemonic == ZYDIS_MNEMONIC_XCHG && form.reference_count != 0);
}

}  // namespace

bool find_facts(std::span<const std::uint8_t> code, trace_instr_facts_t& facts) {
    ZydisDecodedInstruction zydis;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> decoded;
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder(), code.data(), code.size(), &zydis, decoded.data())))
        return false;
    const Operands operands(decoded.data(), zydis.operand_count);
    const Form form = make_form(zydis, decoded.data());
    facts = {};
    facts.size = sizeof facts;
    facts.mnemonic = ZydisMnemonicGetString(zydis.mnemonic);
    facts.category = ZydisCategoryGetString(zydis.meta.category);
    facts.extension = ZydisISAExtGetString(zydis.meta.isa_ext);
    facts.isa_set = ZydisISASetGetString(zydis.meta.isa_set);
    for (const ZydisDecodedOperand& operand : operands)
        facts.vector_bits = std::max(facts.vector_bits, vector_bits_of(operand));
    note_elements(facts, zydis, operands);
    if (is_locked(zydis, form)) facts.flags |= TRACE_FACT_LOCKED;
    // A gather of AVX2 has its mask in a vector register.
    if (form.masked || zydis.meta.category == ZYDIS_CATEGORY_AVX2GATHER)
        facts.flags |= TRACE_FACT_MASKED;
    for (unsigned i = 0; i < form.reference_count; ++i) {
        const MemoryReference& reference = form.references[i];
        if (reference.kind != TRACE_SITE_WRITE) facts.loaded_bytes += reference.bytes;
        if (reference.kind != TRACE_SITE_READ) facts.stored_bytes += reference.bytes;
    }
    return true;
}

// SDM volume 2, by mnemonic.
int x87_pushes(std::uint16_t mnemonic) {
    switch (mnemonic) {
        case ZYDIS_MNEMONIC_FLD:
        case ZYDIS_MNEMONIC_FILD:
        case ZYDIS_MNEMONIC_FBLD:
        case ZYDIS_MNEMONIC_FLD1:
        case ZYDIS_MNEMONIC_FLDL2T:
        case ZYDIS_MNEMONIC_FLDL2E:
        case ZYDIS_MNEMONIC_FLDPI:
        case ZYDIS_MNEMONIC_FLDLG2:
        case ZYDIS_MNEMONIC_FLDLN2:
        case ZYDIS_MNEMONIC_FLDZ:
        case ZYDIS_MNEMONIC_FPTAN:
        case ZYDIS_MNEMONIC_FSINCOS:
        case ZYDIS_MNEMONIC_FXTRACT:
            return 1;
        case ZYDIS_MNEMONIC_FSTP:
        case ZYDIS_MNEMONIC_FSTPNCE:
        case ZYDIS_MNEMONIC_FISTP:
        case ZYDIS_MNEMONIC_FISTTP:
        case ZYDIS_MNEMONIC_FBSTP:
        case ZYDIS_MNEMONIC_FADDP:
        case ZYDIS_MNEMONIC_FMULP:
        case ZYDIS_MNEMONIC_FSUBP:
        case ZYDIS_MNEMONIC_FSUBRP:
        case ZYDIS_MNEMONIC_FDIVP:
        case ZYDIS_MNEMONIC_FDIVRP:
        case ZYDIS_MNEMONIC_FCOMP:
        case ZYDIS_MNEMONIC_FUCOMP:
        case ZYDIS_MNEMONIC_FICOMP:
        case ZYDIS_MNEMONIC_FCOMIP:
        case ZYDIS_MNEMONIC_FUCOMIP:
        case ZYDIS_MNEMONIC_FFREEP:
        case ZYDIS_MNEMONIC_FPATAN:
        case ZYDIS_MNEMONIC_FYL2X:
        case ZYDIS_MNEMONIC_FYL2XP1:
            return -1;
        case ZYDIS_MNEMONIC_FCOMPP:
        case ZYDIS_MNEMONIC_FUCOMPP:
            return -2;
        default:
            return 0;
    }
}

}  // namespace assay::native
