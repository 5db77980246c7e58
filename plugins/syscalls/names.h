// Names of system calls and errors.
#pragma once

#include <cstdint>
#include <string>

namespace syscalls {

// "openat"; "number 999" for one that the kernel's header did not have when assay was built.
std::string name_of_call(std::uint64_t number);
// "ENOENT"; "error 999" for one that the C library does not know.
std::string name_of_error(std::uint32_t error);

}  // namespace syscalls
