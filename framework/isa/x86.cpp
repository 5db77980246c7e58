// x86-64 and i386, as another driver than the native one sees them: each iteration of a repeated
// instruction is an execution.
#include "framework/isa/architecture.h"
#include "framework/x86/decoder.h"
#include "framework/x86/make_form.h"

#include <array>

namespace assay::isa {
namespace {

// All except the target of a direct jump.
void describe_form(const native::Form& form, Instruction& described) {
    described = {};
    described.length = form.length;
    described.flags = static_cast<std::uint8_t>(
        form.trace_flags & ~(TRACE_INSTR_LOAD | TRACE_INSTR_STORE | TRACE_INSTR_REPEATED));
    for (unsigned i = 0; i < form.reference_count; ++i)
        described.add(form.references[i].kind, form.references[i].bytes);
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
    static const ZydisDecoder decoder = [] {
        ZydisDecoder made;
        ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
        return made;
    }();
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

}  // namespace assay::isa
