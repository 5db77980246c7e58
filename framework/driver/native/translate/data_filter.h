// Where the filter of data references lies in a thread's context, and what its checks rely on.
#pragma once

#include "framework/driver/native/translate/emitter.h"

namespace assay::native {

inline constexpr std::size_t kTag = offsetof(Context, data_filter);
inline constexpr std::size_t kTouched = kFootprintsOffset;
inline constexpr std::int32_t kMostAlignedBytes = 8;

// Of a power of two: an address that is a multiple of it does not straddle.
inline bool is_aligned_size(std::uint32_t bytes) {
    return (bytes & (bytes - 1)) == 0 && bytes <= kMostAlignedBytes;
}

// A footprint of the first bytes of a line of 64.
inline std::uint64_t bits_of(std::uint32_t bytes) {
    return bytes < 64 ? (std::uint64_t{1} << bytes) - 1 : ~std::uint64_t{0};
}

}  // namespace assay::native
