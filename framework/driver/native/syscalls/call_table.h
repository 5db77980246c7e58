// What the driver does for each system call, and what it has to know of it.
#pragma once

#include "framework/driver/native/syscalls/syscalls.h"

#include <cstdint>

namespace assay::native {

enum CallTraits : std::uint8_t {
    kInStrictMode = 1,  // seccomp(2) permits it then
    kFillsBuffer = 2,   // the second argument, of so many bytes as the third says
    kMayNotReturn = 4,
};

constexpr std::uint8_t kNoDescriptor = 0xff;

struct CallRow {
    long number;
    long (*handler)(const Call&);
    bool (*may_wait)(const Call&);
    // Which argument is a descriptor that programs try, to find out what is open, or use by
    // accident.
    std::uint8_t descriptor = kNoDescriptor;
    std::uint8_t traits = 0;
};

// Of a call without a row of its own, one that is passed on and does not wait.
const CallRow& row_of(long number);

}  // namespace assay::native
