// The initial stack: strings, auxiliary vector, environment, arguments (psABI, figure 3.9).
//
//   top     random bytes, platform
//           a slot for the program's file name, each argument and each variable, in this order
//           strings that are too long for a slot
//           unused
//           auxiliary vector, pointers to variables and arguments, argc
//   rsp     top - kStringsBytes
//
// Where each string begins, and rsp, thus do not depend on how long the others are. On the stack
// that the kernel builds they do, and with them alignment and cache misses of the whole program.
#pragma once

#include "framework/driver/native/load/elf_loader.h"

#include <cstdint>
#include <string>
#include <vector>

namespace assay::native {

// Builds the stack as the kernel does, and notes in `program` where it lies and what is on it.
// Returns its pointer, or 0 if there is no memory.
std::uint64_t build_stack(LoadedProgram& program, const std::vector<std::string>& argv,
                          char** environment);
// Once the limit of the stack's size (RLIMIT_STACK) has been raised.
void extend_stack(LoadedProgram& program, MemoryMap& memory);

}  // namespace assay::native
