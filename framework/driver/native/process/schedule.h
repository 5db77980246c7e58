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

#include <atomic>
#include <cstdint>
#include <ctime>
#include <deque>
#include <list>

namespace assay::native {

// Who runs, with --schedule=fair: one of the threads that have the program's memory has the turn,
// others are ready and get it one after the other, or wait at an address (futex(2)) until they are
// woken. All that depends only on the order of the calls here; Schedule waits.

// Of one thread.
struct Turn {
    enum State : std::uint8_t { kAway, kReady, kRuns, kAtAddress };
    State state = kAway;
    std::uint64_t address = 0;  // kAtAddress
    std::uint32_t bits = 0;     // likewise: who wakes some of these wakes it
    bool taken = false;         // kRuns: the thread knows
    std::uint64_t call = 0;     // in which it is while it has the turn; 0: none
    // Changes, and is woken as a futex, when the state has become kRuns.
    std::atomic<std::uint32_t> bell{0};
};

class Turns {
  public:
    // The one that runs; nullptr if there is none.
    Turn* running() const { return running_; }
    // Of those that are ready, the one that is next; nullptr if there is none.
    Turn* next() const { return ready_.empty() ? nullptr : ready_.front(); }

    // It was away: behind all that are ready.
    void make_ready(Turn& turn) {
        turn.state = Turn::kReady;
        ready_.push_back(&turn);
    }
    // The one that runs, behind all others. False if there are none, and it runs on.
    bool pass(Turn& turn) {
        if (ready_.empty()) return false;
        running_ = nullptr;
        make_ready(turn);
        return true;
    }
    // The one that runs waits at an address.
    void wait_at(Turn& turn, std::uint64_t address, std::uint32_t bits) {
        running_ = nullptr;
        turn.state = Turn::kAtAddress;
        turn.address = address;
        turn.bits = bits;
        waiting_.push_back(&turn);
    }
    // Whatever it does.
    void go_away(Turn& turn) {
        if (running_ == &turn) running_ = nullptr;
        std::erase(ready_, &turn);
        waiting_.remove(&turn);
        turn.state = Turn::kAway;
        turn.call = 0;
    }
    // If nobody runs, the next one does: that one, or nullptr.
    Turn* start_next() {
        if (running_ != nullptr || ready_.empty()) return nullptr;
        running_ = ready_.front();
        ready_.pop_front();
        running_->state = Turn::kRuns;
        running_->taken = false;
        return running_;
    }

    // At most `most` of those that wait at the address with some of the bits become ready, in the
    // order in which they began to wait. Returns how many.
    std::uint64_t wake(std::uint64_t address, std::uint64_t most, std::uint32_t bits) {
        return take(address, most, [this, bits](Turn& turn) {
            if (!(turn.bits & bits)) return kStays;
            make_ready(turn);
            return kLeaves;
        });
    }
    // So many of them wait at another address from now on.
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
    // In the child of a fork, whose only thread runs.
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
