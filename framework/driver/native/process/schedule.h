// --schedule=fair: of the threads that have the program's memory one runs at a time, for a number
// of instructions, in an order that depends on nothing but the program. So the references of all
// of them have one order, which the collector sees, too.
//
//   - A thread gives its turn away at the end of its slice (Context::slice_countdown, which
//     translated code counts down before each block), by sched_yield(2), where it waits in
//     futex(2), when it ends, and before a system call that is likely to wait for something. Who
//     comes back from such a call goes behind those that are ready.
//   - What futex(2) does to memory that no other process has, the driver does itself: only so it
//     knows who is ready.
//   - The other system calls are made in the thread's turn. Should one of them wait nevertheless,
//     or a thread be stopped when its turn comes, the next one goes on after a while.
//   - A thread that gets the turn completes the trace buffer of the one that had it before. So the
//     order of buffers is that of what they have.
//
// All that is done with the driver's lock held; who waits for its turn does so without it.
#pragma once

#include "framework/driver/native/machine/driver_lock.h"
#include "framework/driver/native/process/turns.h"

#include <cstdint>
#include <ctime>

namespace assay::native {

class Thread;

class Schedule {
  public:
    explicit Schedule(DriverLock& lock) : lock_(lock) {}

    // `slice`: instructions; 0: threads run in parallel, and nothing below does anything.
    void initialise(std::uint32_t slice) { slice_ = slice; }
    bool wanted() const { return slice_ != 0; }

    // The first thread, or the only one of the child of a fork, runs.
    void keep_only(Thread& thread);
    // A new one is ready, behind the others.
    void add(Thread& thread);
    // It has ended.
    void leave(Thread& thread);

    // In the thread itself. All but the first two return when it has its turn.

    // Before something that waits for others.
    void go_away(Thread& thread);
    // Before a system call that does not, in general.
    void begin_call(Thread& thread);
    // Behind both; in a new thread; or where a child of vfork(2) has had it.
    void come_back(Thread& thread);
    // The others that are ready come first.
    void pass(Thread& thread);

    // futex(2), for memory that only this process has.
    struct Deadline {
        timespec time;
        bool realtime;  // of CLOCK_REALTIME, not CLOCK_MONOTONIC
    };
    enum class WaitResult : std::uint8_t { kWoken, kTimeout, kSignal };
    WaitResult wait_at(Thread& thread, std::uint64_t address, std::uint32_t bits,
                       const Deadline* deadline);
    std::uint64_t wake(std::uint64_t address, std::uint64_t most, std::uint32_t bits);
    std::uint64_t move(std::uint64_t from, std::uint64_t to, std::uint64_t most);

  private:
    void start_next();
    void wait_for_turn(Thread& thread);
    void begin_slice(Thread& thread);
    void look_at_others(const Turn& turn);

    DriverLock& lock_;
    std::uint32_t slice_ = 0;
    Turns turns_;
    Thread* last_ = nullptr;  // had the turn last
    std::uint64_t calls_ = 0;
    // What a waiting thread has found when it last looked.
    const Turn* stuck_ = nullptr;
    std::uint64_t stuck_in_ = 0;
    unsigned stuck_looks_ = 0;
};

}  // namespace assay::native
