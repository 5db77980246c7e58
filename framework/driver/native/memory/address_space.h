// Where mappings go. The kernel gives the highest free addresses first, and what is free depends on
// the sizes of the driver's own libraries and tables, which differ between machines.
#pragma once

#include <cstdint>

namespace assay::native {

// Below this the program, and the code cache, have the address space to themselves. The kernel
// gives the driver its own mappings above, below the stack's 0x7fff'ffff'f000. ThreadSanitizer
// accepts mappings of a program only from 0x7e80'0000'0000 on (compiler-rt, tsan_platform.h).
inline constexpr std::uint64_t kArenaTop = 0x7fc0'0000'0000;

// The kernel's TASK_SIZE_MAX with page tables of four levels. Bases of fs and gs are below.
inline constexpr std::uint64_t kAddressesEnd = 0x7fff'ffff'f000;

// True if the kernel does not randomise addresses of this process.
bool addresses_are_fixed();

// The personality(2) that the program would have by itself: that the kernel does not randomise
// addresses is assay's doing, and sometimes not only assay's.
unsigned long personality_of_program(bool asks_for_fixed_addresses);

// Takes all that is free above kArenaTop, so that from now on the kernel itself gives the addresses
// right below it. To be called when the driver's own large mappings have been made; without effect
// where addresses are randomised, or limited in number (RLIMIT_AS). Where the kernel itself begins
// below kArenaTop, because the limit of the stack is very large, there is nothing to take.
void begin_arena();

// Address space, without access, for what the driver maps later: above kArenaTop, where the
// program's own mappings are not in the way, if there is an arena. Never given back. nullptr if
// there is none left. Threads take turns.
unsigned char* reserve_outside_arena(std::uint64_t bytes);

}  // namespace assay::native
