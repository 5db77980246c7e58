// iretq: how a program restores all of its registers at once, such as Wine behind an exception.
#pragma once

#include "framework/driver/native/machine/context.h"

namespace assay::native {

// Takes where to go on, the flags and the stack pointer from the stack. False, and nothing is
// changed, where it would fault or go on in another mode than that of 64-bit programs.
bool return_from_interrupt(Context& context);

}  // namespace assay::native
