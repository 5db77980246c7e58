// Access to memory that the target named: it may be anything.
#pragma once

#include "framework/driver/native/context.h"

namespace assay::native {

inline bool read_target(std::uint64_t from, void* to, std::size_t bytes) {
    return assay_copy(to, reinterpret_cast<const void*>(from), bytes) == 0;
}

inline bool write_target(std::uint64_t to, const void* from, std::size_t bytes) {
    return assay_copy(reinterpret_cast<void*>(to), from, bytes) == 0;
}

}  // namespace assay::native
