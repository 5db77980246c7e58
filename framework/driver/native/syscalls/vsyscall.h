// The vsyscall page: three functions at fixed addresses, which old static programs call.
#pragma once

#include <cstdint>

namespace assay::native {

class Thread;

// Does what the call at `pc` would do, and returns from it. False if there is no such function, or
// the kernel has no such page.
bool call_vsyscall(Thread& thread, std::uint64_t pc);

}  // namespace assay::native
