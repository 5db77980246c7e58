// A run: references of one operand in one thread with a constant stride. A reference with a
// different stride begins a new run.
#pragma once

#include <cstdint>

namespace effective_address {

// The stride of the very first reference, which has no predecessor.
inline constexpr std::int64_t kNoStride = INT64_MIN;

struct ReferenceRun {
    std::uint64_t end;    // address of the last reference
    std::int64_t stride;  // from each reference to the next, and from the reference before the run
                          // to its first
    std::uint64_t count;  // number of references

    // 0 gives the last reference.
    std::uint64_t address(std::uint64_t backwards) const {
        return end - backwards * static_cast<std::uint64_t>(stride);
    }
};

}  // namespace effective_address
