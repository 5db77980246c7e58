// futex(2) between processes that share memory.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cstdint>
#include <ctime>

namespace assay::trace {

// Sleeps while `word` is `expected`. A wake, a signal or the end of `timeout` (nullptr: no limit)
// ends the sleep. The caller must check its condition again in each case.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       const timespec* timeout) {
    syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeout, nullptr, 0);
}

inline void futex_wake(std::atomic<std::uint32_t>& word, int at_most = 1) {
    syscall(SYS_futex, &word, FUTEX_WAKE, at_most, nullptr, nullptr, 0);
}

}  // namespace assay::trace
