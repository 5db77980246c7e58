// The target's system calls: most go to the kernel as they are; those that concern what the
// driver keeps itself (memory that is executable, the program break, signals, fs, new processes)
// are emulated or watched.
#include "framework/driver/native/syscalls/syscalls.h"

#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/syscalls/call_records.h"
#include "framework/driver/native/syscalls/clone.h"
#include "framework/driver/native/syscalls/execute.h"
#include "framework/driver/native/syscalls/proc_files.h"
#include "framework/driver/native/syscalls/waiting_calls.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace assay::native {

namespace {

// For a signal that is held since the call was about to begin, or interrupted it.
bool is_to_be_repeated(const Signals& signals, long result) {
    return (result == -EINTR || result == kNotCalled) && signals.holds();
}

long make_call(const Call& call) {
    Process& process = call.process();
    Signals& signals = call.thread.signals;
    if (process.schedule.wanted() && may_wait(call))
        process.schedule.go_away(call.thread);
    else
        process.schedule.begin_call(call.thread);
    process.lock.unlock();
    long result = 0;
    do {
        signals.lend_held();
        result =
            assay_interruptible_syscall(signals.pending_flag(), call.number, call.arguments.data());
    } while (!signals.pending() && (is_to_be_repeated(signals, result) ||
                                    (result == -EINTR && process.stress.enabled())));
    process.lock.lock();
    process.schedule.come_back(call.thread);
    return result;
}

// The kernel stores only what comes before a page that the driver has protected, or loses a message
// that it has no room for.
void end_protection_of_buffer(const Call& call) {
    constexpr std::uint64_t kMost = 0x7ffff000;  // MAX_RW_COUNT
    Process& process = call.process();
    const bool receives =
        call.number == SYS_read || call.number == SYS_pread64 || call.number == SYS_recvfrom;
    if (process.watch.empty() || !receives) return;
    const std::uint64_t start = call.unsigned_argument(1);
    const std::uint64_t end = start + std::min(call.unsigned_argument(2), kMost);
    if (!process.memory.overlaps(start, end)) return;
    for (std::uint64_t page = start & ~(kPage - 1); page < end; page += kPage)
        if (process.watch.guards(page) && process.watch.let_write(page))
            process.code_changed(page, page + kPage);
}

// False if no page was protected.
bool end_protection_of_code(Process& process) {
    if (process.watch.empty()) return false;
    const std::vector<std::uint64_t> pages = process.watch.let_write_everywhere();
    for (const std::uint64_t page : pages) process.code_changed(page * kPage, (page + 1) * kPage);
    return !pages.empty();
}

}  // namespace

long pass_on(const Call& call) {
    Signals& signals = call.thread.signals;
    end_protection_of_buffer(call);
    long result = make_call(call);
    // Perhaps because of the driver's protection.
    if (result == -EFAULT && end_protection_of_code(call.process())) result = make_call(call);
    signals.end_wait(result);
    signals.take_back_held();
    return result;
}

long pass_on_locked(const Call& call) {
    const auto& a = call.arguments;
    const long result = syscall(call.number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return result == -1 ? -errno : result;
}

namespace {

// --- Processes.

long do_execute(const Call& call) {
    const bool at = call.number == SYS_execveat;
    const unsigned first = at ? 1 : 0;
    leave_terminal(call.process());
    return execute(
        call.thread,
        {at ? static_cast<int>(call.arguments[0]) : AT_FDCWD, call.pointer<const char>(first),
         call.pointer<char* const>(first + 1), call.pointer<char* const>(first + 2),
         at ? static_cast<int>(call.arguments[4]) : 0});
}

// --- Signals.

// Reads what the argument points to, if to anything; false if it cannot be read.
template <typename T>
bool read_optional(const Call& call, unsigned argument, T& value, const T*& pointer) {
    pointer = call.arguments[argument] == 0 ? nullptr : &value;
    return !pointer || read_target(call.unsigned_argument(argument), &value, sizeof value);
}

template <typename T>
long write_optional(const Call& call, unsigned argument, const T& value, long result) {
    if (result != 0 || call.arguments[argument] == 0) return result;
    return write_target(call.unsigned_argument(argument), &value, sizeof value) ? 0 : -EFAULT;
}

constexpr long kMaskBytes = 8;

long do_signal_action(const Call& call) {
    if (call.arguments[3] != kMaskBytes) return -EINVAL;
    KernelAction action, old;
    const KernelAction* wanted = nullptr;
    if (!read_optional(call, 1, action, wanted)) return -EFAULT;
    const long result =
        call.thread.relations.actions->set(static_cast<int>(call.arguments[0]), wanted, &old);
    return write_optional(call, 2, old, result);
}

long do_signal_mask(const Call& call) {
    if (call.arguments[3] != kMaskBytes) return -EINVAL;
    std::uint64_t mask = 0, old = 0;
    const std::uint64_t* wanted = nullptr;
    if (!read_optional(call, 1, mask, wanted)) return -EFAULT;
    const long result =
        call.thread.signals.set_mask(static_cast<int>(call.arguments[0]), wanted, &old);
    return write_optional(call, 2, old, result);
}

long do_signal_stack(const Call& call) {
    stack_t stack, old;
    const stack_t* wanted = nullptr;
    if (!read_optional(call, 0, stack, wanted)) return -EFAULT;
    return write_optional(call, 1, old, call.thread.signals.set_stack(wanted, &old));
}

// A call that waits with a mask in the place of the thread's. The kernel reports what is wrong with
// its arguments.
long do_wait_with_mask(const Call& call, std::uint64_t address) {
    std::uint64_t mask = 0;
    if (address == 0 || !read_target(address, &mask, sizeof mask)) return pass_on(call);
    call.thread.signals.begin_wait(mask);
    return pass_on(call);
}

// pselect6(2) and io_pgetevents(2): the argument is the address of the mask's address and size.
long do_wait_with_sized_mask(const Call& call) {
    std::uint64_t mask = 0;
    if (!read_target(call.unsigned_argument(5), &mask, sizeof mask)) return pass_on(call);
    return do_wait_with_mask(call, mask);
}

long do_wait_for_signal(const Call& call) {
    std::uint64_t set = 0;
    if (read_target(call.unsigned_argument(0), &set, sizeof set)) call.thread.signals.wait_for(set);
    return pass_on(call);
}

bool is_permitted_in_strict_mode(long number) {
    return number == SYS_read || number == SYS_write || number == SYS_exit;
}

long do_yield(const Call& call) {
    if (!call.process().schedule.wanted()) return pass_on(call);
    call.process().schedule.pass(call.thread);
    return 0;
}

// Newer than the oldest supported headers: mseal(2), Linux 6.10; futex_waitv(2), 5.16, and its
// relatives, 6.7.
constexpr long kMemorySeal = 462;
constexpr long kFutexWaitMany = 449, kFutexWake = 454, kFutexWait = 455, kFutexRequeue = 456;

long dispatch(const Call& call) {
    if (call.thread.relations.strict && !is_permitted_in_strict_mode(call.number)) {
        do_call_in_strict_mode(call);
        return 0;
    }
    if (is_on_own_descriptor(call)) return -EBADF;
    leave_terminal_if_used(call);
    switch (call.number) {
        case SYS_brk:
            return do_break(call);
        case SYS_mmap:
            return do_map(call);
        case SYS_munmap:
            return do_unmap(call);
        case SYS_mprotect:
            return do_protect(call);
        case SYS_pkey_mprotect:
            return do_protect_by_key(call);
        case SYS_pkey_alloc:
            return do_allocate_key(call);
        case SYS_mremap:
            return do_remap(call);
        case SYS_madvise:
            return do_advise(call);
        case SYS_shmat:
            return do_attach(call);
        case SYS_shmdt:
            return do_detach(call);
        case SYS_mincore:
        case SYS_mlock:
        case SYS_mlock2:
        case SYS_munlock:
        case SYS_msync:
        case kMemorySeal:
            return do_look_at_memory(call);
        case SYS_mlockall:
            return do_lock_all(call);
        case SYS_arch_prctl:
            return do_arch_prctl(call);
        case SYS_prctl:
            return do_prctl(call);
        case SYS_seccomp:
            return do_seccomp(call);
        case SYS_personality:
            return do_personality(call);
        case SYS_getrlimit:
        case SYS_setrlimit:
        case SYS_prlimit64:
            return do_limit(call);
        case SYS_ptrace:
            return do_trace(call);
        case SYS_kill:
        case SYS_tkill:
        case SYS_tgkill:
            return do_kill(call);
        case SYS_set_tid_address:
            return do_set_tid_address(call);
        case SYS_set_robust_list:
            return do_set_robust_list(call);
        case SYS_rseq:
            return -ENOSYS;  // the driver's libc has registered its own
        case SYS_clone3:
            return do_clone3(call);
        case SYS_fork:
            return do_clone(call.thread, {.flags = SIGCHLD});
        case SYS_vfork:
            return do_clone(call.thread, {.flags = CLONE_VM | CLONE_VFORK | SIGCHLD});
        case SYS_clone:
            return do_clone(call.thread, {call.unsigned_argument(0) & 0xffffffff,
                                          call.unsigned_argument(1), call.unsigned_argument(2),
                                          call.unsigned_argument(3), call.unsigned_argument(4)});
        case SYS_execve:
        case SYS_execveat:
            return do_execute(call);
        case SYS_close_range:
            return close_other_descriptors(static_cast<unsigned>(call.arguments[0]),
                                           static_cast<unsigned>(call.arguments[1]),
                                           static_cast<unsigned>(call.arguments[2]));
        case SYS_rt_sigaction:
            return do_signal_action(call);
        case SYS_rt_sigprocmask:
            return do_signal_mask(call);
        case SYS_sigaltstack:
            return do_signal_stack(call);
        case SYS_rt_sigsuspend:
            return do_wait_with_mask(call, call.unsigned_argument(0));
        case SYS_rt_sigtimedwait:
            return do_wait_for_signal(call);
        case SYS_ppoll:
            return do_wait_with_mask(call, call.unsigned_argument(3));
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2:
            return do_wait_with_mask(call, call.unsigned_argument(4));
        case SYS_pselect6:
        case SYS_io_pgetevents:
            return do_wait_with_sized_mask(call);
        case SYS_getdents64:
            return do_list_folder(call);
        case SYS_readlink:
        case SYS_readlinkat:
            return do_readlink(call);
        case SYS_read:
        case SYS_pread64:
        case SYS_readv:
        case SYS_preadv:
        case SYS_preadv2:
        case SYS_sendfile:
        case SYS_splice:
            return do_read(call);
        case SYS_ioctl:
            return do_control(call);
        case SYS_truncate:
            return do_truncate(call);
        case SYS_open:
        case SYS_creat:
        case SYS_openat:
        case SYS_openat2:
            return do_open(call);
        case SYS_stat:
        case SYS_newfstatat:
        case SYS_statx:
        case SYS_access:
        case SYS_faccessat:
        case SYS_faccessat2:
            return do_look(call);
        case SYS_futex:
            return do_futex(call);
        case kFutexWaitMany:
        case kFutexWake:
        case kFutexWait:
        case kFutexRequeue:
            return do_newer_futex(call);
        case SYS_sched_yield:
            return do_yield(call);
        case SYS_exit:
            do_exit(call.thread, static_cast<int>(call.arguments[0]));
            return 0;
        case SYS_exit_group:
            call.thread.finish(static_cast<int>(call.arguments[0]));
        default:
            return pass_on(call);
    }
}

// Whether the call is started again because there was only another thread's request to leave
// translated code.
bool is_only_asked_to_leave(const Signals& signals) {
    return !signals.pending() && signals.asked_to_leave();
}

}  // namespace

void do_syscall(Thread& thread, std::uint64_t syscall_pc) {
    constexpr std::uint64_t kSyscallBytes = 2;
    Context& context = *thread.context;
    const Call call{thread,
                    static_cast<long>(context.gpr[RAX]),
                    {static_cast<long>(context.gpr[RDI]), static_cast<long>(context.gpr[RSI]),
                     static_cast<long>(context.gpr[RDX]), static_cast<long>(context.gpr[R10]),
                     static_cast<long>(context.gpr[R8]), static_cast<long>(context.gpr[R9])}};
    context.pc = syscall_pc + kSyscallBytes;
    CallRecords records(thread, call.number);
    if (call.number == SYS_rt_sigreturn) {
        const std::uint32_t site = thread.stack_site();
        if (!goes_on_in_64_bits(context))
            thread.refuse("a handler of a signal goes on in another code segment");
        thread.signals.return_from_handler();
        thread.record_stack(site);
        thread.allocations.leave(context);
        thread.allocations.resume(context);
        return thread.process.regions.leave_functions(context);
    }
    context.gpr[RCX] = context.pc;
    context.gpr[R11] = context.rflags;
    thread.signals.begin_call(call.number);
    const long result = dispatch(call);
    thread.allocations.look_at_others();
    thread.process.look_at_pages(thread);
    thread.signals.end_call();
    // The handler finds the registers of before the call: kernel/seccomp.c, syscall_rollback().
    if (thread.signals.call_refused()) return records.has_no_result();
    if (result == kNotCalled || (result == -EINTR && is_only_asked_to_leave(thread.signals))) {
        context.pc = syscall_pc;
        return records.was_not_made();
    }
    records.has_result(result);
    context.gpr[RAX] = static_cast<std::uint64_t>(result);
}

}  // namespace assay::native
