// How the driver handles each system call.
#pragma once

#include "framework/driver/native/syscalls/syscalls.h"

#include <cstdint>

namespace assay::native {

enum CallTraits : std::uint8_t {
    kInStrictMode = 1,  // seccomp(2) permits it in strict mode
    kFillsBuffer = 2,   // writes to the second argument; the third is its size
    kMayNotReturn = 4,
};

constexpr std::uint8_t kNoDescriptor = 0xff;

struct CallRow {
    long number;
    long (*handler)(const Call&);
    bool (*may_wait)(const Call&);
    // The index of an argument that is a descriptor. It has to be checked because programs try
    // descriptors to find open ones, or use a wrong one.
    std::uint8_t descriptor = kNoDescriptor;
    std::uint8_t traits = 0;
};

// Returns a default row for an unlisted call: the driver passes it on, and it does not wait.
const CallRow& row_of(long number);

}  // namespace assay::native
