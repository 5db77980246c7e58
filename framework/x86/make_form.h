// What the translator needs to know of an instruction (Form), from what Zydis says of it.
#pragma once

#include "framework/x86/instruction.h"

#include <Zydis/Zydis.h>

namespace assay::native {

// `operands` are all of the instruction's, hidden ones included.
Form make_form(const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand* operands);

}  // namespace assay::native
