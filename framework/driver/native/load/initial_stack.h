// The initial stack: strings, auxiliary vector, environment, arguments (psABI, figure 3.9).
//
//   top     random bytes, platform
//           a slot for the program's file name, each argument and each variable, in this order
//           strings that are too long for a slot
//           unused
//           auxiliary vector, pointers to variables and arguments, argc
//   rsp     top - kStringsBytes
//
// The length of a string therefore changes neither rsp nor the address of another string. On a
// stack that the kernel builds, it does change both, and so the alignment and the cache misses of
// the whole program.
#pragma once

#include "framework/driver/native/load/elf_loader.h"

#include <cstdint>
#include <string>
#include <vector>

namespace assay::native {

// Builds the stack and stores its addresses and contents in `program`. Returns the stack pointer,
// or 0 if there is no memory.
std::uint64_t build_stack(LoadedProgram& program, const std::vector<std::string>& argv,
                          char** environment);
// To be called after the limit of the stack's size (RLIMIT_STACK) was raised.
void extend_stack(LoadedProgram& program, MemoryMap& memory);

}  // namespace assay::native
