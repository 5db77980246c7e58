// The lock on everything that the threads of the program share in the driver: translations, the
// tables of the trace, the map of the memory, dispositions of signals. A thread holds it while it
// is in the driver, but not while translated code runs, nor a system call of the program.
//
// Not a std::mutex, because it is taken in signal handlers (of threads that run translated code
// and therefore do not hold it), and must be usable in the child of a fork(2) or vfork(2).
#pragma once

#include "framework/trace/futex.h"

#include <atomic>
#include <cstdint>
#include <ctime>

namespace assay::native {

class DriverLock {
  public:
    void lock() {
        std::uint32_t free = kFree;
        if (word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) return;
        // Whoever else was woken may be a thread of another process, which ended before it ran.
        constexpr timespec kLongestSleep{0, 20'000'000};
        while (word_.exchange(kAwaited, std::memory_order_acquire) != kFree)
            trace::futex_wait(word_, kAwaited, &kLongestSleep);
    }
    bool try_lock() {
        std::uint32_t free = kFree;
        return word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire);
    }
    void unlock() {
        if (word_.exchange(kFree, std::memory_order_release) == kAwaited) trace::futex_wake(word_);
    }
    // Lets the kernel unlock it at the end of the calling thread, which holds it, if other
    // processes share the memory then (set_tid_address(2)): no other thread of a process that ends
    // can take it and keep it for ever.
    void unlock_at_end() { syscall(SYS_set_tid_address, &word_); }

  private:
    // Futexes Are Tricky (Drepper 2011), section 6, mutex 3.
    enum State : std::uint32_t { kFree = 0, kHeld, kAwaited };  // 0: what the kernel writes
    std::atomic<std::uint32_t> word_{kFree};
};

}  // namespace assay::native
