// Reads memory that the target names in a system call: where it cannot be read, that is no fault
// but an error, as it is for the kernel.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::native {

bool read_target(const void* from, void* to, std::size_t bytes);
// Up to its final zero, if that comes within `most` bytes.
std::optional<std::string> read_target_text(const char* from, std::size_t most);
// An array that a null pointer ends; the null pointer is not part of the result. A null array is an
// empty one, as execve(2) takes it.
std::optional<std::vector<char*>> read_target_pointers(char* const* from);

}  // namespace assay::native
