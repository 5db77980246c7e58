// cpuid and xgetbv as the program sees them.
#pragma once

#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/processor/shown_processor.h"

namespace assay::native {

// Answers as the shown processor. False if that has no register for xgetbv's ecx.
bool identify(Context& context, const Instruction& instruction, const ShownProcessor& processor);

}  // namespace assay::native
