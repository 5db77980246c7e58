// Access to memory at addresses from the target. Any address may be invalid.
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

// True if the byte is writable. Does not change the byte. False if the driver has protected its
// page: see CodeWatch.
inline bool touch_target(std::uint64_t address) {
    return assay_touch(reinterpret_cast<void*>(address)) == 0;
}

// Reads a string up to its final zero. Returns nothing if that does not come within `most` bytes.
std::optional<std::string> read_target_text(const char* from, std::size_t most);
// Reads an array up to its final null pointer, which the result does not contain. A null array
// counts as empty, as in execve(2).
std::optional<std::vector<char*>> read_target_pointers(char* const* from);

}  // namespace assay::native
