// Which system calls are likely to wait for something, for Schedule: so that the other threads of
// the program run meanwhile.
#pragma once

#include "framework/driver/native/syscalls/syscalls.h"

namespace assay::native {

// By its number, and, where that does not tell, by whether there is anything to read, or room to
// write, at the moment.
bool may_wait(const Call& call);

}  // namespace assay::native
