// Descriptors that a driver holds while the program runs: high ones, where a program neither looks
// for the lowest free number nor places its own.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>

namespace assay::trace {

// Gives the descriptor a high number, and closes it on exec. It keeps the old one if there is no
// other.
inline int move_high(int descriptor) {
    // fork(2) copies the descriptor table up to the highest open one.
    constexpr rlim_t kHighest = 1024;
    constexpr rlim_t kRoom = 8;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t highest = std::min(limit.rlim_cur, kHighest);
    const int moved = highest <= kRoom
                          ? -1
                          : fcntl(descriptor, F_DUPFD_CLOEXEC, static_cast<int>(highest - kRoom));
    if (moved < 0) return descriptor;
    close(descriptor);
    return moved;
}

}  // namespace assay::trace
