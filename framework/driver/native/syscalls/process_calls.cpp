// The program's calls that set or show the kernel's state of a process or thread as a whole:
// prctl(2), arch_prctl(2), personality(2), seccomp(2), set_tid_address(2), set_robust_list(2).
#include "framework/driver/native/load/initial_stack.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/address_space.h"
#include "framework/driver/native/memory/free_addresses.h"
#include "framework/driver/native/memory/own_memory.h"
#include "framework/driver/native/processor/shown_processor.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <asm/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace assay::native {

namespace {

// Constants that the oldest supported headers lack: linux/prctl.h.
constexpr long kSetSyscallUserDispatch = 59, kSetMemoryDenyWriteExecute = 65;
// asm/prctl.h, since Linux 5.16: get the supported components of XSAVE, get the permitted ones,
// request one more. The last two calls are for guests of KVM.
constexpr long kGetComponents = 0x1021, kGetPermitted = 0x1022, kRequestPermission = 0x1023,
               kGetGuestPermitted = 0x1024, kRequestGuestPermission = 0x1025;

// The driver emulates strict mode, because in the kernel the driver's own calls would end the
// thread: it permits only read, write, exit and rt_sigreturn (seccomp(2)).
long begin_strict_mode(const Call& call) {
    // A process cannot leave strict mode, and cannot enter it after it has installed a filter.
    if (syscall(SYS_prctl, PR_GET_SECCOMP) != SECCOMP_MODE_DISABLED) return -EINVAL;
    call.thread.relations.strict = true;
    return 0;
}

// With a filter the driver makes fewer system calls (clone.cpp, assay_resume). Programs also call
// this function with an invalid address, to find out whether the kernel supports filters.
long install_filter(const Call& call) {
    Process& process = call.process();
    const bool filtered = process.filters_calls;
    stop_moving_break();
    process.trace.stop_populating();
    process.filters_calls = true;  // before the call: a signal may arrive right after it
    const long result = pass_on(call);
    if (is_error(result) && !filtered) {
        process.filters_calls = false;
        if (process.is_only_thread(call.thread)) let_break_move();
    }
    return result;
}

// Hides assay's own death signal until the program sets one (collector/child.cpp).
long show_death_signal(const Call& call) {
    if (call.process().attributes.sets_death_signal) return pass_on(call);
    const int none = 0;
    return write_target(call.unsigned_argument(1), &none, sizeof none) ? 0 : -EFAULT;
}

// Removes the kernel's components that the program is not shown.
long show_components(const Call& call) {
    std::uint64_t components = 0;
    if (syscall(SYS_arch_prctl, call.arguments[0], &components) != 0) return -errno;
    components &= shown_processor().xcr0();
    return write_target(call.unsigned_argument(1), &components, sizeof components) ? 0 : -EFAULT;
}

// Answers like a kernel without optional components, or passes the call on to such a kernel.
long request_component(const Call& call) {
    std::uint64_t components = 0;
    if (syscall(SYS_arch_prctl, kGetComponents, &components) != 0) return -EINVAL;
    return components & ~shown_processor().xcr0() ? -EOPNOTSUPP : pass_on(call);
}

}  // namespace

void do_call_in_strict_mode(const Call& call) {
    Thread& thread = call.thread;
    if (call.process().is_only_thread(thread)) thread.kill();
    do_exit(thread, SIGKILL);
}

long do_arch_prctl(const Call& call) {
    Context& context = *call.thread.context;
    const auto put = [&](std::uint64_t value) -> long {
        return write_target(call.unsigned_argument(1), &value, sizeof value) ? 0 : -EFAULT;
    };
    const bool sets = call.arguments[0] == ARCH_SET_FS || call.arguments[0] == ARCH_SET_GS;
    if (sets && call.unsigned_argument(1) >= kAddressesEnd) return -EPERM;
    switch (call.arguments[0]) {
        case ARCH_SET_FS:
            context.target_fs = call.unsigned_argument(1);
            call.thread.allocations.set_thread_pointer(context.target_fs);
            return 0;
        case ARCH_GET_FS:
            return put(context.target_fs);
        case ARCH_SET_GS:
            context.target_gs = call.unsigned_argument(1);
            return 0;
        case ARCH_GET_GS:
            return put(context.target_gs);
        case kGetComponents:
        case kGetPermitted:
            return show_components(call);
        case kRequestPermission:
            return request_component(call);
        case kGetGuestPermitted:
        case kRequestGuestPermission:
            return pass_on(call);
        default:
            return -EINVAL;
    }
}

long do_prctl(const Call& call) {
    switch (call.arguments[0]) {
        case PR_SET_MM:
            return -EPERM;  // like without CAP_SYS_RESOURCE: the limits are the driver's
        case PR_SET_PDEATHSIG: {
            const long result = pass_on(call);
            if (result == 0) call.process().attributes.sets_death_signal = true;
            return result;
        }
        case PR_GET_PDEATHSIG:
            return show_death_signal(call);
        case PR_SET_SECCOMP:
            if (call.arguments[1] == SECCOMP_MODE_STRICT) return begin_strict_mode(call);
            return install_filter(call);
        // Old kernels also answer EINVAL. These functions would affect the driver itself.
        case PR_SET_TSC:
        case kSetSyscallUserDispatch:
        case kSetMemoryDenyWriteExecute:
            return -EINVAL;
        default:
            return pass_on(call);
    }
}

long do_seccomp(const Call& call) {
    switch (call.arguments[0]) {
        case SECCOMP_SET_MODE_STRICT:
            return call.arguments[1] == 0 && call.arguments[2] == 0 ? begin_strict_mode(call)
                                                                    : -EINVAL;
        case SECCOMP_SET_MODE_FILTER:
            return install_filter(call);
        default:
            return pass_on(call);
    }
}

// The kernel clears the word at the thread's end, instead of the driver. With a schedule the driver
// clears it, because it has to know which thread is woken.
long do_set_tid_address(const Call& call) {
    if (call.process().schedule.wanted()) {
        call.thread.end_notice.clear_child_tid = call.unsigned_argument(0);
        return call.thread.tid();
    }
    const long result = pass_on(call);
    if (!is_error(result)) call.thread.end_notice.clear_child_tid = 0;
    return result;
}

long do_set_robust_list(const Call& call) {
    const long result = pass_on(call);
    if (!is_error(result)) call.thread.end_notice.robust_list = call.unsigned_argument(0);
    return result;
}

// assay turns off random addresses, also for programs that this program executes. The program sees
// the flag only if it has set the flag itself.
long do_personality(const Call& call) {
    constexpr std::uint64_t kQuery = 0xffffffff;
    std::uint64_t& shown = call.process().attributes.personality;
    const std::uint64_t wanted = call.unsigned_argument(0) & kQuery;
    const std::uint64_t before = shown;
    if (wanted == kQuery) return static_cast<long>(before);
    Call passed = call;
    if (addresses_are_fixed()) passed.arguments[0] |= ADDR_NO_RANDOMIZE;
    const long result = pass_on_locked(passed);
    if (is_error(result)) return result;
    shown = wanted;
    return static_cast<long>(before);
}

// getrlimit(2), setrlimit(2) and prlimit(2). The kernel would count the driver's memory, which is
// most of the memory. The driver therefore only remembers limits of memory.

namespace {

// The call as a prlimit(2). `wanted`, `old`: addresses of the new and the old limit, or 0.
struct LimitRequest {
    long pid = 0;
    long resource = 0;
    std::uint64_t wanted = 0, old = 0;
};

LimitRequest request_of(const Call& call) {
    switch (call.number) {
        case SYS_getrlimit:
            return {.resource = call.arguments[0], .old = call.unsigned_argument(1)};
        case SYS_setrlimit:
            return {.resource = call.arguments[0], .wanted = call.unsigned_argument(1)};
        default:
            return {call.arguments[0], call.arguments[1], call.unsigned_argument(2),
                    call.unsigned_argument(3)};
    }
}

bool is_own(const LimitRequest& request) {
    return request.pid == 0 || request.pid == getpid();
}

bool concerns_driver(const LimitRequest& request) {
    return is_own(request) && (request.resource == RLIMIT_AS || request.resource == RLIMIT_DATA);
}

rlimit current(const MemoryLimits& limits, long resource) {
    const std::optional<rlimit>& set = limits.of(resource);
    rlimit limit{};
    if (!set) getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    return set.value_or(limit);
}

}  // namespace

long do_limit(const Call& call) {
    const LimitRequest request = request_of(call);
    if (!concerns_driver(request)) {
        const long result = pass_on(call);
        const bool sets =
            request.wanted != 0 && is_own(request) && !call.thread.relations.shares_trace;
        if (result == 0 && sets && request.resource == RLIMIT_STACK)
            extend_stack(call.process().program, call.process().memory);
        return result;
    }
    MemoryLimits& limits = call.process().attributes.memory_limits;
    const rlimit before = current(limits, request.resource);
    if (request.wanted != 0) {
        rlimit wanted{};
        if (!read_target(request.wanted, &wanted, sizeof wanted)) return -EFAULT;
        if (wanted.rlim_cur > wanted.rlim_max) return -EINVAL;
        if (wanted.rlim_max > before.rlim_max && geteuid() != 0) return -EPERM;
        limits.of(request.resource) = wanted;
    }
    const bool show = request.old != 0 || call.number == SYS_getrlimit;
    return show && !write_target(request.old, &before, sizeof before) ? -EFAULT : 0;
}

// clone3(2): the features that clone(2) also has, with the kernel's own checks (kernel/fork.c,
// copy_clone_args_from_user and clone3_args_valid).

namespace {

constexpr std::uint64_t kLegacyFlags = 0xffffffff,
                        kKnownCloneFlags = kLegacyFlags | CLONE_CLEAR_SIGHAND;
constexpr std::uint64_t kExitSignal = 0xff;
constexpr std::uint64_t kMostSignals = 64;

bool all_zero(const unsigned char* begin, const unsigned char* end) {
    return std::all_of(begin, end, [](unsigned char byte) { return byte == 0; });
}

// A program may pass a larger structure than the driver knows if the rest is zero.
long read_arguments(std::uint64_t from, std::uint64_t bytes, clone_args& arguments) {
    std::array<unsigned char, kPage> raw{};
    if (bytes > kPage) return -E2BIG;
    if (bytes < CLONE_ARGS_SIZE_VER0) return -EINVAL;
    if (!read_target(from, raw.data(), bytes)) return -EFAULT;
    if (!all_zero(raw.data() + sizeof arguments, raw.data() + raw.size())) return -E2BIG;
    std::memcpy(&arguments, raw.data(), sizeof arguments);
    return 0;
}

bool is_valid(const clone_args& arguments) {
    const std::uint64_t flags = arguments.flags;
    constexpr std::uint64_t kHandlers = CLONE_SIGHAND | CLONE_CLEAR_SIGHAND;
    if (flags & ~kKnownCloneFlags || flags & (CLONE_DETACHED | (kExitSignal & ~CLONE_NEWTIME)))
        return false;
    if ((flags & kHandlers) == kHandlers || arguments.exit_signal > kMostSignals) return false;
    if (flags & CLONE_PIDFD && flags & CLONE_PARENT_SETTID &&
        arguments.pidfd == arguments.parent_tid)
        return false;
    if (flags & (CLONE_THREAD | CLONE_PARENT) && arguments.exit_signal != 0) return false;
    return (arguments.stack == 0) == (arguments.stack_size == 0);
}

}  // namespace

// First calls clone3(2) without a structure. EINVAL shows that the kernel has the call (since Linux
// 5.3) and that filters of seccomp(2) permit it.
long do_clone3(const Call& call) {
    const long known = pass_on({call.thread, call.number, {}});
    if (known != -EINVAL) return known;
    const std::uint64_t from = call.unsigned_argument(0), bytes = call.unsigned_argument(1);
    clone_args arguments{};
    if (const long error = read_arguments(from, bytes, arguments)) return error;
    if (!is_valid(arguments)) return -EINVAL;
    if (arguments.set_tid_size != 0) return -EPERM;  // like without CAP_CHECKPOINT_RESTORE
    const bool pidfd = arguments.flags & CLONE_PIDFD;
    if (pidfd && arguments.pidfd == 0) return -EFAULT;
    // In clone(2) this bit belongs to the signal number.
    if (arguments.flags & CLONE_NEWTIME) return -EINVAL;
    return do_clone(call.thread, {.flags = arguments.flags | arguments.exit_signal,
                                  .stack = arguments.stack + arguments.stack_size,
                                  .parent_tid = arguments.parent_tid,
                                  .child_tid = arguments.child_tid,
                                  .tls = arguments.tls,
                                  .pidfd = pidfd ? arguments.pidfd : 0});
}

}  // namespace assay::native
