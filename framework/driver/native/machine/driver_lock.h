// The lock on all data that the program's threads share in the driver: translations, the tables of
// the trace, the memory map, signal dispositions. A thread holds it while it is in the driver. It
// does not hold it while it runs translated code or a system call of the program.
//
// The lock is not a std::mutex for two reasons. Signal handlers of threads that run translated code
// take it. It must also work in the child of a fork(2) or vfork(2).
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
        // The woken waiter may be a thread of another process that ended before it ran. The time
        // limit keeps this thread from waiting for ever.
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
    // Makes the kernel unlock it when the calling thread, which holds it, ends
    // (set_tid_address(2)). This works if other processes share the memory then. No other thread of
    // the ending process can take the lock and keep it for ever.
    void unlock_at_end() { syscall(SYS_set_tid_address, &word_); }

  private:
    // Futexes Are Tricky (Drepper 2011), section 6, mutex 3.
    enum State : std::uint32_t { kFree = 0, kHeld, kAwaited };  // 0 because the kernel writes that
    std::atomic<std::uint32_t> word_{kFree};
};

}  // namespace assay::native
