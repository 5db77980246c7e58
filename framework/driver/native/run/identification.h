// cpuid and xgetbv as the program sees them.
#pragma once

#include "framework/x86/instruction.h"

namespace assay::native {

class Thread;

// Answers as the level that the specification asks for.
void identify(Thread& thread, const Instruction& instruction);

}  // namespace assay::native
