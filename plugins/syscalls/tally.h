// What is counted of system calls.
#pragma once

#include <cstdint>

namespace syscalls {

struct Tally {
    std::uint64_t calls = 0, errors = 0;
    std::uint64_t read = 0, written = 0;  // bytes
    std::uint64_t nanoseconds = 0;

    Tally& operator+=(const Tally& other) {
        calls += other.calls;
        errors += other.errors;
        read += other.read;
        written += other.written;
        nanoseconds += other.nanoseconds;
        return *this;
    }
};

}  // namespace syscalls
