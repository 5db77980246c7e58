// futex(2) with --schedule=fair. The driver handles futexes in memory that only this process has.
// The order of waiting and waking then depends only on the program. The kernel handles futexes in
// shared memory and those with inherited priorities.
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <optional>

namespace assay::native {
namespace {

constexpr long kNanoseconds = 1'000'000'000;

// The checks of kernel/futex/core.c, get_futex_key().
long check(std::uint64_t address) {
    std::uint32_t value = 0;
    if (address % sizeof value != 0) return -EINVAL;
    return read_target(address, &value, sizeof value) ? 0 : -EFAULT;
}

// The result after a signal, as in restart_syscall(2) and signal(7). A call with a timeout ends
// after a handler. A call without one is made again if the handler has SA_RESTART.
long after_signal(const Call& call, bool has_deadline) {
    const KernelAction action =
        call.thread.relations.actions->of(call.thread.signals.pending_number());
    const bool has_handler = action.handler != reinterpret_cast<std::uint64_t>(SIG_DFL) &&
                             action.handler != reinterpret_cast<std::uint64_t>(SIG_IGN);
    if (!has_handler) return kNotCalled;
    return has_deadline || !(action.flags & SA_RESTART) ? -EINTR : kNotCalled;
}

long read_deadline(const Call& call, std::optional<Schedule::Deadline>& deadline) {
    if (call.arguments[3] == 0) return 0;
    timespec time{};
    if (!read_target(call.unsigned_argument(3), &time, sizeof time)) return -EFAULT;
    if (time.tv_sec < 0 || time.tv_nsec < 0 || time.tv_nsec >= kNanoseconds) return -EINVAL;
    const long command = call.arguments[1] & FUTEX_CMD_MASK;
    const bool realtime = call.arguments[1] & FUTEX_CLOCK_REALTIME;
    if (command == FUTEX_WAIT) {
        timespec now{};
        clock_gettime(realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now);
        const long nanoseconds = now.tv_nsec + time.tv_nsec;
        const long carry = nanoseconds / kNanoseconds;
        time.tv_nsec = nanoseconds % kNanoseconds;
        if (__builtin_add_overflow(now.tv_sec + carry, time.tv_sec, &time.tv_sec))
            time.tv_sec = LONG_MAX;
    }
    deadline = Schedule::Deadline{time, realtime};
    return 0;
}

long wait(const Call& call, std::uint32_t bits) {
    const std::uint64_t address = call.unsigned_argument(0);
    std::optional<Schedule::Deadline> deadline;
    if (bits == 0) return -EINVAL;
    if (const long error = read_deadline(call, deadline); error != 0) return error;
    if (const long error = check(address); error != 0) return error;
    std::uint32_t value = 0;
    read_target(address, &value, sizeof value);
    if (value != static_cast<std::uint32_t>(call.arguments[2])) return -EAGAIN;
    switch (call.process().schedule.wait_at(call.thread, address, bits,
                                            deadline ? &*deadline : nullptr)) {
        case Schedule::WaitResult::kWoken:
            return 0;
        case Schedule::WaitResult::kTimeout:
            return -ETIMEDOUT;
        case Schedule::WaitResult::kSignal:
            return after_signal(call, deadline.has_value());
    }
    return 0;
}

// The kernel wakes one thread even if `count` is 0 (kernel/futex/waitwake.c, futex_wake()).
std::uint64_t at_least_one(long count) {
    return static_cast<std::uint64_t>(std::max(static_cast<int>(count), 1));
}

long wake(const Call& call, std::uint32_t bits) {
    const std::uint64_t address = call.unsigned_argument(0);
    if (bits == 0 || address % sizeof bits != 0) return -EINVAL;
    return static_cast<long>(
        call.process().schedule.wake(address, at_least_one(call.arguments[2]), bits));
}

long requeue(const Call& call, bool compares) {
    const std::uint64_t from = call.unsigned_argument(0), to = call.unsigned_argument(4);
    const auto wakes = static_cast<int>(call.arguments[2]);
    const auto moves = static_cast<int>(call.arguments[3]);
    if (wakes < 0 || moves < 0) return -EINVAL;
    for (const std::uint64_t address : {from, to})
        if (const long error = check(address); error != 0) return error;
    std::uint32_t value = 0;
    if (compares && !read_target(from, &value, sizeof value)) return -EFAULT;
    if (compares && value != static_cast<std::uint32_t>(call.arguments[5])) return -EAGAIN;
    Schedule& schedule = call.process().schedule;
    const std::uint64_t woken =
        schedule.wake(from, static_cast<unsigned>(wakes), FUTEX_BITSET_MATCH_ANY);
    return static_cast<long>(woken + schedule.move(from, to, static_cast<unsigned>(moves)));
}

// FUTEX_WAKE_OP of futex(2): operation, comparison and two signed numbers of 12 bits.
struct WakeOperation {
    unsigned operation, comparison;
    int argument, compared;

    explicit WakeOperation(std::uint32_t code)
        : operation(code >> 28 & 7),
          comparison(code >> 24 & 0xf),
          argument(static_cast<int>(code << 8) >> 20),
          compared(static_cast<int>(code << 20) >> 20) {
        constexpr unsigned kShift = FUTEX_OP_OPARG_SHIFT;
        if (code >> 28 & kShift) argument = static_cast<int>(1U << (argument & 31));
    }

    bool is_known() const { return operation <= FUTEX_OP_XOR && comparison <= FUTEX_OP_CMP_GE; }
    std::uint32_t apply(std::uint32_t before) const {
        const auto with = static_cast<std::uint32_t>(argument);
        switch (operation) {
            case FUTEX_OP_SET:
                return with;
            case FUTEX_OP_ADD:
                return before + with;
            case FUTEX_OP_OR:
                return before | with;
            case FUTEX_OP_ANDN:
                return before & ~with;
            default:
                return before ^ with;
        }
    }
    bool compare(int before) const {
        switch (comparison) {
            case FUTEX_OP_CMP_EQ:
                return before == compared;
            case FUTEX_OP_CMP_NE:
                return before != compared;
            case FUTEX_OP_CMP_LT:
                return before < compared;
            case FUTEX_OP_CMP_LE:
                return before <= compared;
            case FUTEX_OP_CMP_GT:
                return before > compared;
            default:
                return before >= compared;
        }
    }
};

// No other thread of the process runs meanwhile.
long wake_and_operate(const Call& call) {
    const std::uint64_t first = call.unsigned_argument(0), second = call.unsigned_argument(4);
    for (const std::uint64_t address : {first, second})
        if (const long error = check(address); error != 0) return error;
    const WakeOperation operation(static_cast<std::uint32_t>(call.arguments[5]));
    if (!operation.is_known()) return -ENOSYS;
    std::uint32_t before = 0;
    if (!read_target(second, &before, sizeof before)) return -EFAULT;
    const std::uint32_t after = operation.apply(before);
    if (!write_target(second, &after, sizeof after)) return -EFAULT;
    Schedule& schedule = call.process().schedule;
    std::uint64_t woken =
        schedule.wake(first, at_least_one(call.arguments[2]), FUTEX_BITSET_MATCH_ANY);
    if (operation.compare(static_cast<int>(before)))
        woken += schedule.wake(second, at_least_one(call.arguments[3]), FUTEX_BITSET_MATCH_ANY);
    return static_cast<long>(woken);
}

bool is_own(const Call& call, std::uint64_t address) {
    return (call.arguments[1] & FUTEX_PRIVATE_FLAG) || !call.process().shared_memory.has(address);
}

// --- Robust locks: kernel/futex/core.c, exit_robust_list(). The kernel repeats this work later,
// and finds nothing left to do.

constexpr std::uint64_t kPriorityInherited = 1;  // flag in the address of an entry

void release_lock(const Thread& thread, std::uint64_t address, bool pending) {
    Process& process = thread.process;
    std::uint32_t value = 0;
    if (address % sizeof value != 0 || !read_target(address, &value, sizeof value)) return;
    const bool shared = process.shared_memory.has(address);
    const auto wake = [&] {
        if (shared)
            syscall(SYS_futex, address, FUTEX_WAKE, 1, nullptr, nullptr, 0);
        else
            process.schedule.wake(address, 1, FUTEX_BITSET_MATCH_ANY);
    };
    // The thread has released the lock and has not woken a waiting thread.
    if (pending && value == 0) return wake();
    if ((value & FUTEX_TID_MASK) != static_cast<std::uint32_t>(thread.tid())) return;
    if (assay_touch(reinterpret_cast<void*>(address)) != 0) return;
    const std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(address));
    while (!word.compare_exchange_weak(value, (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED)) {
    }
    if (value & FUTEX_WAITERS) wake();
}

// True if the kernel also has to process the list.
bool release_robust_locks(const Thread& thread) {
    robust_list_head head{};
    const std::uint64_t list = thread.end_notice.robust_list;
    if (list == 0 || !read_target(list, &head, sizeof head)) return false;
    bool inherits = false;
    const auto release = [&](std::uint64_t entry, bool pending) {
        if (entry & kPriorityInherited)
            inherits = true;
        else
            release_lock(thread, entry + static_cast<std::uint64_t>(head.futex_offset), pending);
    };
    const auto pending = reinterpret_cast<std::uint64_t>(head.list_op_pending);
    auto entry = reinterpret_cast<std::uint64_t>(head.list.next);
    for (unsigned left = ROBUST_LIST_LIMIT; left > 0 && (entry & ~kPriorityInherited) != list;
         --left) {
        std::uint64_t next = 0;
        const bool known = read_target(entry & ~kPriorityInherited, &next, sizeof next);
        if (entry != pending) release(entry, false);
        if (!known) break;
        entry = next;
    }
    if (pending != 0) release(pending, true);
    return inherits;
}

}  // namespace

long do_futex(const Call& call) {
    const bool of_kernel =
        !call.process().schedule.wanted() || !is_own(call, call.unsigned_argument(0));
    if (of_kernel) return pass_on(call);
    switch (call.arguments[1] & FUTEX_CMD_MASK) {
        case FUTEX_WAIT:
            return wait(call, FUTEX_BITSET_MATCH_ANY);
        case FUTEX_WAIT_BITSET:
            return wait(call, static_cast<std::uint32_t>(call.arguments[5]));
        case FUTEX_WAKE:
            return wake(call, FUTEX_BITSET_MATCH_ANY);
        case FUTEX_WAKE_BITSET:
            return wake(call, static_cast<std::uint32_t>(call.arguments[5]));
        case FUTEX_REQUEUE:
            return requeue(call, false);
        case FUTEX_CMP_REQUEUE:
            return requeue(call, true);
        case FUTEX_WAKE_OP:
            return wake_and_operate(call);
        default:
            return pass_on(call);
    }
}

// Answers like an older kernel, without these calls.
long do_newer_futex(const Call& call) {
    return call.process().schedule.wanted() ? -ENOSYS : pass_on(call);
}

void release_futexes(const Thread& thread) {
    if (!release_robust_locks(thread))
        syscall(SYS_set_robust_list, nullptr, sizeof(robust_list_head));
    const std::uint64_t cleared = thread.end_notice.clear_child_tid;
    if (cleared == 0) return;
    const int none = 0;
    write_target(cleared, &none, sizeof none);
    if (thread.process.shared_memory.has(cleared))
        syscall(SYS_futex, cleared, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    else
        thread.process.schedule.wake(cleared, 1, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace assay::native
