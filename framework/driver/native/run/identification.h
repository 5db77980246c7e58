// cpuid and xgetbv as the program sees them.
#pragma once

#include "framework/driver/native/machine/context.h"

namespace assay::native {

// Answers as that level. False if xgetbv is asked for a register that there is not: ecx.
bool identify(Context& context, const Instruction& instruction, trace::CpuLevel level);

}  // namespace assay::native
