// --schedule=fair: of the threads that share the program's memory only one runs at a time, for a
// number of instructions. The order of turns depends only on the program. So the references of all
// threads have one order, which the collector also sees.
//
//   - A thread gives its turn away at the end of its slice (Context::slice_countdown, which
//     translated code counts down before each block), by sched_yield(2), when it waits in futex(2),
//     when it ends, and before a system call that is likely to wait. After such a call, the thread
//     queues behind the ready threads.
//   - The driver handles futex(2) for memory that no other process has, because otherwise it would
//     not know which threads are ready.
//   - A thread makes other system calls in its turn. If such a call waits nevertheless, or if a
//     thread is stopped when its turn comes, the next thread continues after a while.
//   - A thread that gets the turn completes the trace buffer of the previous thread. So buffers are
//     in the order of their records.
//
// Callers hold the driver's lock. A thread waits for its turn without the lock.
#pragma once

#include "framework/driver/native/machine/driver_lock.h"

#include <atomic>
#include <cstdint>
#include <ctime>
#include <deque>
#include <list>

namespace assay::native {

// The queue of turns. One of the threads that share the program's memory has the turn. The others
// are ready and get it one after the other, or wait at an address (futex(2)) until they are woken.
// The state depends only on the order of the calls here. Turns never waits; Schedule does.

// The turn of one thread.
struct Turn {
    enum State : std::uint8_t { kAway, kReady, kRuns, kAtAddress };
    State state = kAway;
    std::uint64_t address = 0;  // kAtAddress
    std::uint32_t bits = 0;     // kAtAddress: a wake-up with one of these bits wakes it
    bool taken = false;         // kRuns: the thread knows that it runs
    std::uint64_t call = 0;     // number of the system call during the turn; 0: no call
    // Changes, and is woken as a futex, when the state has become kRuns.
    std::atomic<std::uint32_t> bell{0};
};

class Turns {
  public:
    // The running turn, or nullptr.
    Turn* running() const { return running_; }
    // The next ready turn, or nullptr.
    Turn* next() const { return ready_.empty() ? nullptr : ready_.front(); }

    // Puts a turn that was away behind all ready ones.
    void make_ready(Turn& turn) {
        turn.state = Turn::kReady;
        ready_.push_back(&turn);
    }
    // Puts the running turn behind all ready ones. False if no other is ready: it goes on.
    bool pass(Turn& turn) {
        if (ready_.empty()) return false;
        running_ = nullptr;
        make_ready(turn);
        return true;
    }
    // The running turn starts to wait at an address.
    void wait_at(Turn& turn, std::uint64_t address, std::uint32_t bits) {
        running_ = nullptr;
        turn.state = Turn::kAtAddress;
        turn.address = address;
        turn.bits = bits;
        waiting_.push_back(&turn);
    }
    // Removes the turn, whatever its state is.
    void go_away(Turn& turn) {
        if (running_ == &turn) running_ = nullptr;
        std::erase(ready_, &turn);
        waiting_.remove(&turn);
        turn.state = Turn::kAway;
        turn.call = 0;
    }
    // If no turn is running, starts the next one. Returns that one, or nullptr.
    Turn* start_next() {
        if (running_ != nullptr || ready_.empty()) return nullptr;
        running_ = ready_.front();
        ready_.pop_front();
        running_->state = Turn::kRuns;
        running_->taken = false;
        return running_;
    }

    // Makes up to `most` turns ready that wait at the address with one of the bits, in the order in
    // which they began to wait. Returns their number.
    std::uint64_t wake(std::uint64_t address, std::uint64_t most, std::uint32_t bits) {
        return take(address, most, [this, bits](Turn& turn) {
            if (!(turn.bits & bits)) return kStays;
            make_ready(turn);
            return kLeaves;
        });
    }
    // Moves up to `most` waiting turns to another address. Returns their number.
    std::uint64_t move(std::uint64_t from, std::uint64_t to, std::uint64_t most) {
        std::list<Turn*> moved;
        const std::uint64_t count = take(from, most, [&](Turn& turn) {
            turn.address = to;
            moved.push_back(&turn);
            return kLeaves;
        });
        waiting_.splice(waiting_.end(), moved);
        return count;
    }
    // To be called in the child of a fork, whose only thread runs.
    void keep_only(Turn& turn) {
        ready_.clear();
        waiting_.clear();
        running_ = &turn;
        turn.state = Turn::kRuns;
        turn.taken = true;
        turn.call = 0;
    }

  private:
    enum Fate : std::uint8_t { kStays, kLeaves };

    template <typename Decide>
    std::uint64_t take(std::uint64_t address, std::uint64_t most, const Decide& decide) {
        std::uint64_t count = 0;
        for (auto at = waiting_.begin(); at != waiting_.end() && count < most;) {
            const bool leaves = (*at)->address == address && decide(**at) == kLeaves;
            count += leaves ? 1 : 0;
            at = leaves ? waiting_.erase(at) : std::next(at);
        }
        return count;
    }

    Turn* running_ = nullptr;
    std::deque<Turn*> ready_;
    std::list<Turn*> waiting_;
};

class Thread;

class Schedule {
  public:
    explicit Schedule(DriverLock& lock) : lock_(lock) {}

    // `slice`: instructions. With 0 threads run in parallel, and all functions below do nothing.
    void initialise(std::uint32_t slice) { slice_ = slice; }
    bool wanted() const { return slice_ != 0; }

    // The first thread starts, or the only thread in the child of a fork.
    void keep_only(Thread& thread);
    // Queues a new thread behind the others.
    void add(Thread& thread);
    void leave(Thread& thread);

    // Called by the thread itself. All except go_away() and begin_call() return when the thread has
    // its turn.
    //
    // Before an action that waits for others.
    void go_away(Thread& thread);
    // Before a system call that usually does not wait.
    void begin_call(Thread& thread);
    // After go_away() and begin_call(), in a new thread, and after a child of vfork(2) had the
    // turn.
    void come_back(Thread& thread);
    // Lets the other ready threads run first.
    void pass(Thread& thread);

    // futex(2), for memory that only this process has.
    struct Deadline {
        timespec time;
        bool realtime;  // the time is of CLOCK_REALTIME, otherwise of CLOCK_MONOTONIC
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
    Thread* last_ = nullptr;  // that had the turn last
    std::uint64_t calls_ = 0;
    // The stuck turn that a waiting thread found at its last look.
    const Turn* stuck_ = nullptr;
    std::uint64_t stuck_in_ = 0;
    unsigned stuck_looks_ = 0;
};

}  // namespace assay::native
