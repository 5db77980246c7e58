// A run: references of one operand in one thread, each as far from the one before as that was from
// its own predecessor. A reference that breaks the rhythm begins a run of its own.
#pragma once

#include <cstdint>

namespace effective_address {

// The stride of the first reference of all, which has no predecessor.
inline constexpr std::int64_t kNoStride = INT64_MIN;

struct ReferenceRun {
    std::uint64_t end;    // address of the last reference
    std::int64_t stride;  // from each reference to the next, and of the first from the one before
    std::uint64_t count;  // of references

    // 0 is the last one.
    std::uint64_t address(std::uint64_t backwards) const {
        return end - backwards * static_cast<std::uint64_t>(stride);
    }
};

}  // namespace effective_address
