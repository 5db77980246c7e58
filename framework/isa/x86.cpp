// x86-64 and i386, as another driver than the native one sees them: each iteration of a repeated
// instruction is an execution.
#include "framework/isa/architecture.h"
#include "framework/x86/decoder.h"
#include "framework/x86/make_form.h"

#include <array>
#include <initializer_list>

namespace assay::isa {
namespace {

// Loads segment registers, or the registers that name tables of segments.
bool loads_segment(const native::Form& form) {
    switch (form.opcode) {
        case TRACE_OPCODE(0, 0x8e):  // mov
        case TRACE_OPCODE(1, 0x00):  // lldt, ltr, verr, verw
        case TRACE_OPCODE(1, 0xa1):  // pop fs
        case TRACE_OPCODE(1, 0xa9):  // pop gs
        case TRACE_OPCODE(1, 0xb2):  // lss
        case TRACE_OPCODE(1, 0xb4):  // lfs
        case TRACE_OPCODE(1, 0xb5):  // lgs
            return true;
        default:
            return false;
    }
}

// Jumps that change the code segment. QEMU reports the descriptors that the processor reads among
// the operands, so these instructions have no operands.
void describe_system(const native::Form& form, Instruction& described) {
    const bool is_far = form.flow == native::Flow::kUnsupported;
    unsigned flags = 0;
    switch (form.mnemonic) {
        case ZYDIS_MNEMONIC_IRET:
        case ZYDIS_MNEMONIC_IRETD:
        case ZYDIS_MNEMONIC_IRETQ:
        case ZYDIS_MNEMONIC_RSM:
        case ZYDIS_MNEMONIC_SYSEXIT:
        case ZYDIS_MNEMONIC_SYSRET:
            flags = TRACE_INSTR_RETURN;
            described.ends_handler = true;
            break;
        case ZYDIS_MNEMONIC_CALL:
            if (is_far) flags = TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT;
            break;
        case ZYDIS_MNEMONIC_JMP:
            if (is_far) flags = TRACE_INSTR_INDIRECT;
            break;
        case ZYDIS_MNEMONIC_RET:
            if (is_far) flags = TRACE_INSTR_RETURN;
            break;
        default:
            break;
    }
    if (flags == 0 && !loads_segment(form)) return;
    described.flags = static_cast<std::uint8_t>(flags);
    described.operand_count = 0;
}

// All except the target of a direct jump.
void describe_form(const native::Form& form, Instruction& described) {
    described = {};
    described.length = form.length;
    described.flags = static_cast<std::uint8_t>(
        form.trace_flags & ~(TRACE_INSTR_LOAD | TRACE_INSTR_STORE | TRACE_INSTR_REPEATED));
    for (unsigned i = 0; i < form.reference_count; ++i)
        described.add(form.references[i].kind, form.references[i].bytes);
    described.may_fault = form.may_fault;
    describe_system(form, described);
}

// In the modes of 32 and 16 bits.
bool describe_legacy(ZydisMachineMode mode, ZydisStackWidth width,
                     std::span<const std::uint8_t> code, Instruction& described) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, mode, width);
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction,
                                             operands.data())))
        return false;
    describe_form(native::make_form(instruction, operands.data()), described);
    if (instruction.raw.imm[0].is_relative)
        described.jumps(static_cast<std::int32_t>(instruction.raw.imm[0].value.s) +
                        instruction.length);
    return true;
}

bool describe_real_mode(std::span<const std::uint8_t> code, Instruction& described) {
    return describe_legacy(ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16, code, described);
}

}  // namespace

bool describe_x86(std::span<const std::uint8_t> code, Instruction& described) {
    static native::Decoder decoder;
    native::Instruction instruction;
    if (!decoder.decode(code, 0, instruction)) return false;
    const native::Form& form = *instruction.form;
    describe_form(form, described);
    described.opcode = form.opcode;
    switch (form.flow) {
        case native::Flow::kJump:
        case native::Flow::kConditional:
        case native::Flow::kCounted:
        case native::Flow::kCall:
            described.jumps(static_cast<std::int32_t>(instruction.target()));
            break;
        default:
            break;
    }
    return true;
}

bool describe_i386(std::span<const std::uint8_t> code, Instruction& described) {
    return describe_legacy(ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32, code, described);
}

void describe_x86_flow(std::span<const std::uint8_t> code, Instruction& described) {
    for (const auto describe : {describe_x86, describe_i386, describe_real_mode}) {
        Instruction found;
        if (!describe(code, found) || found.length != code.size()) continue;
        constexpr unsigned kFlow =
            TRACE_INSTR_CONDITIONAL | TRACE_INSTR_INDIRECT | TRACE_INSTR_CALL | TRACE_INSTR_RETURN;
        described = {};
        described.length = found.length;
        described.flags = static_cast<std::uint8_t>(found.flags & kFlow);
        described.is_direct = found.is_direct;
        described.distance = found.distance;
        described.ends_handler = found.ends_handler;
        return;
    }
}

}  // namespace assay::isa
