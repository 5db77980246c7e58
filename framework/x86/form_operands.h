// The operands of an instruction's form: registers, and references to memory.
#pragma once

#include "framework/x86/instruction.h"

#include <Zydis/Zydis.h>

namespace assay::native {

// The part of make_form() that goes by operands: Form::reads to kills, references, destination,
// sources, and whether the driver can do with their segments. The form's encoding, flow, special
// and processor_use are known by then.
void note_operands(Form& form, const ZydisDecodedInstruction& zydis,
                   const ZydisDecodedOperand* operands);

// Of which general-purpose register it is all or a part, kRip, or kNoGpr.
std::uint8_t gpr_of(ZydisRegister reg);

bool is_string_instruction(const ZydisDecodedInstruction& zydis);

}  // namespace assay::native
