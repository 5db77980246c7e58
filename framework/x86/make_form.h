// Makes the Form of an instruction, which the translator uses, from Zydis's description of it.
#pragma once

#include "framework/x86/instruction.h"

#include <Zydis/Zydis.h>

namespace assay::native {

// `operands` includes hidden ones.
Form make_form(const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand* operands);

}  // namespace assay::native
