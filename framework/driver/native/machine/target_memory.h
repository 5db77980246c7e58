// Access to memory that the target named: it may be anything.
#pragma once

#include "framework/driver/native/machine/context.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::native {

inline constexpr std::uint64_t kPage = 4096;  // bytes of a small page

inline bool read_target(std::uint64_t from, void* to, std::size_t bytes) {
    return assay_copy(to, reinterpret_cast<const void*>(from), bytes) == 0;
}

inline bool write_target(std::uint64_t to, const void* from, std::size_t bytes) {
    return assay_copy(reinterpret_cast<void*>(to), from, bytes) == 0;
}

// True if the byte can be written, which leaves it as it is. Not if the driver has protected its
// page: see CodeWatch.
inline bool touch_target(std::uint64_t address) {
    return assay_touch(reinterpret_cast<void*>(address)) == 0;
}

// Up to its final zero; nothing if that does not come within `most` bytes.
std::optional<std::string> read_target_text(const char* from, std::size_t most);
// An array that a null pointer ends, without that. A null array is an empty one, as execve(2) takes
// it.
std::optional<std::vector<char*>> read_target_pointers(char* const* from);

}  // namespace assay::native
