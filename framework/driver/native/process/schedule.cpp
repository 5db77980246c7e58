#include "framework/driver/native/process/schedule.h"

#include "framework/driver/native/process/thread.h"

#include <cerrno>

namespace assay::native {
namespace {

// After kLooks looks at a stuck thread, the next thread starts. The time between looks is long
// enough for a busy machine.
constexpr timespec kBetweenLooks{0, 100'000'000};
constexpr unsigned kLooks = 10;

// Tells the thread that it has the turn. The caller wakes it, best without the lock.
void announce(Turn& turn) {
    turn.bell.fetch_add(1, std::memory_order_release);
}

}  // namespace

void Schedule::keep_only(Thread& thread) {
    if (!wanted()) return;
    turns_.keep_only(thread.turn);
    last_ = nullptr;
    stuck_ = nullptr;
    begin_slice(thread);
}

void Schedule::add(Thread& thread) {
    if (!wanted()) return;
    turns_.make_ready(thread.turn);
    start_next();
}

void Schedule::leave(Thread& thread) {
    if (!wanted()) return;
    if (last_ == &thread) last_ = nullptr;
    turns_.go_away(thread.turn);
    start_next();
}

void Schedule::go_away(Thread& thread) {
    if (!wanted()) return;
    turns_.go_away(thread.turn);
    start_next();
}

void Schedule::begin_call(Thread& thread) {
    if (wanted()) thread.turn.call = ++calls_;
}

void Schedule::come_back(Thread& thread) {
    if (!wanted()) return;
    Turn& turn = thread.turn;
    turn.call = 0;
    // A child of vfork(2) may have been killed in any state.
    if (turn.state == Turn::kAtAddress) turns_.go_away(turn);
    if (turn.state == Turn::kAway) turns_.make_ready(turn);
    start_next();
    wait_for_turn(thread);
}

void Schedule::pass(Thread& thread) {
    if (!wanted()) return;
    Turn& turn = thread.turn;
    if (!turns_.pass(turn)) return begin_slice(thread);
    Turn& next = *turns_.start_next();
    announce(next);
    const std::uint32_t bell = turn.bell.load(std::memory_order_acquire);
    lock_.unlock();
    trace::futex_wake(next.bell);
    trace::futex_wait(turn.bell, bell, &kBetweenLooks);
    lock_.lock();
    wait_for_turn(thread);
}

void Schedule::start_next() {
    Turn* const next = turns_.start_next();
    if (next == nullptr) return;
    announce(*next);
    trace::futex_wake(next->bell);
}

void Schedule::wait_for_turn(Thread& thread) {
    Turn& turn = thread.turn;
    while (turn.state != Turn::kRuns) {
        // The thread lost its turn while it was stopped or in a system call.
        if (turn.state == Turn::kAway) {
            turns_.make_ready(turn);
            start_next();
            continue;
        }
        const std::uint32_t bell = turn.bell.load(std::memory_order_acquire);
        lock_.unlock();
        trace::futex_wait(turn.bell, bell, &kBetweenLooks);
        lock_.lock();
        if (turn.state == Turn::kReady) look_at_others(turn);
    }
    if (turn.taken && last_ == &thread) return;
    turn.taken = true;
    begin_slice(thread);
}

void Schedule::begin_slice(Thread& thread) {
    if (last_ != &thread) {
        if (last_ != nullptr) last_->trace.end();
        thread.forget_recent_lines();
    }
    last_ = &thread;
    thread.context->slice_countdown = slice_;
}

// The running thread may be stopped and not know of its turn, or it may be in a system call.
void Schedule::look_at_others(const Turn& turn) {
    Turn* const running = turns_.running();
    if (turns_.next() != &turn || running == nullptr || (running->taken && running->call == 0))
        return;
    // A number that changes when the running thread makes progress.
    const std::uint64_t in = running->taken ? running->call : running->bell.load();
    stuck_looks_ = stuck_ == running && stuck_in_ == in ? stuck_looks_ + 1 : 0;
    stuck_ = running;
    stuck_in_ = in;
    if (stuck_looks_ < kLooks) return;
    turns_.go_away(*running);
    start_next();
}

Schedule::WaitResult Schedule::wait_at(Thread& thread, std::uint64_t address, std::uint32_t bits,
                                       const Deadline* deadline) {
    Turn& turn = thread.turn;
    turns_.wait_at(turn, address, bits);
    Turn* next = turns_.start_next();
    if (next != nullptr) announce(*next);
    WaitResult result = WaitResult::kWoken;
    while (turn.state == Turn::kAtAddress) {
        const long operation =
            FUTEX_WAIT_BITSET | (deadline && deadline->realtime ? FUTEX_CLOCK_REALTIME : 0);
        const long arguments[6] = {
            reinterpret_cast<long>(&turn.bell),
            operation,
            static_cast<long>(turn.bell.load(std::memory_order_acquire)),
            deadline ? reinterpret_cast<long>(&deadline->time) : 0L,
            0,
            static_cast<long>(FUTEX_BITSET_MATCH_ANY),
        };
        lock_.unlock();
        if (next != nullptr) trace::futex_wake(next->bell);
        next = nullptr;
        const long error =
            assay_interruptible_syscall(thread.signals.pending_flag(), SYS_futex, arguments);
        lock_.lock();
        if (turn.state != Turn::kAtAddress) break;
        if (thread.signals.pending())
            result = WaitResult::kSignal;
        else if (error == -ETIMEDOUT)
            result = WaitResult::kTimeout;
        else
            continue;
        turns_.go_away(turn);
        turns_.make_ready(turn);
        start_next();
    }
    wait_for_turn(thread);
    return result;
}

std::uint64_t Schedule::wake(std::uint64_t address, std::uint64_t most, std::uint32_t bits) {
    const std::uint64_t woken = turns_.wake(address, most, bits);
    start_next();
    return woken;
}

std::uint64_t Schedule::move(std::uint64_t from, std::uint64_t to, std::uint64_t most) {
    return turns_.move(from, to, most);
}

}  // namespace assay::native
