// x86-64, as another driver than the native one sees it: each iteration of a repeated instruction
// is an execution.
#include "framework/isa/architecture.h"
#include "framework/x86/decoder.h"

namespace assay::isa {

bool describe_x86(std::span<const std::uint8_t> code, Instruction& described) {
    static native::Decoder decoder;
    native::Instruction instruction;
    if (!decoder.decode(code, 0, instruction)) return false;
    const native::Form& form = *instruction.form;
    described = {};
    described.length = form.length;
    described.opcode = form.opcode;
    described.flags = static_cast<std::uint8_t>(
        form.trace_flags & ~(TRACE_INSTR_LOAD | TRACE_INSTR_STORE | TRACE_INSTR_REPEATED));
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
    for (unsigned i = 0; i < form.reference_count; ++i)
        described.add(form.references[i].kind, form.references[i].bytes);
    return true;
}

}  // namespace assay::isa
