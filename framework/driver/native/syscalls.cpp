// The target's system calls: most go to the kernel as they are; those that concern what the
// driver keeps itself (memory that is executable, the program break, signals, fs, new processes)
// are emulated or watched.
#include "framework/driver/native/syscalls.h"

#include "framework/driver/native/clone.h"
#include "framework/driver/native/execute.h"
#include "framework/driver/native/own_descriptors.h"
#include "framework/driver/native/target_memory.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace assay::native {

namespace {

long make_call(const Call& call) {
    Process& process = call.process();
    process.lock.unlock();
    long result = 0;
    do {
        result = assay_interruptible_syscall(call.thread.signals.pending_flag(), call.number,
                                             call.arguments.data());
    } while (result == -EINTR && process.stress.enabled() && !call.thread.signals.pending());
    process.lock.lock();
    return result;
}

}  // namespace

long pass_on(const Call& call) {
    Process& process = call.process();
    const long result = make_call(call);
    if (result != -EFAULT || process.watch.empty()) return result;
    // Perhaps because of the driver's protection of code.
    const std::vector<std::uint64_t> pages = process.watch.let_write_everywhere();
    for (const std::uint64_t page : pages)
        process.code_changed(page * CodeWatch::kPage, (page + 1) * CodeWatch::kPage);
    return pages.empty() ? result : make_call(call);
}

long pass_on_locked(const Call& call) {
    const auto& a = call.arguments;
    const long result = syscall(call.number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return result == -1 ? -errno : result;
}

namespace {

// --- Files that show the driver instead of the target.

// Where the target names its own executable, the driver's stands in its place.
void show_own_executable(Call& call, unsigned path_argument) {
    if (is_own_executable(call.pointer<const char>(path_argument)))
        call.arguments[path_argument] =
            reinterpret_cast<long>(call.process().program.executable.c_str());
}

// `other`: of dup2(2), which cannot make a number either that the driver uses.
long do_descriptor(const Call& call, long descriptor, long other = -1) {
    return is_own_descriptor(descriptor) || is_own_descriptor(other) ? -EBADF : pass_on(call);
}

// --- Processes.

long do_arch_prctl(const Call& call) {
    Context& context = *call.thread.context;
    const auto put = [&](std::uint64_t value) -> long {
        return write_target(call.unsigned_argument(1), &value, sizeof value) ? 0 : -EFAULT;
    };
    switch (call.arguments[0]) {
        case ARCH_SET_FS:
            context.target_fs = call.unsigned_argument(1);
            return 0;
        case ARCH_GET_FS:
            return put(context.target_fs);
        case ARCH_SET_GS:
            context.target_gs = call.unsigned_argument(1);
            return 0;
        case ARCH_GET_GS:
            return put(context.target_gs);
        default:
            return -EINVAL;
    }
}

long do_execute(const Call& call) {
    const bool at = call.number == SYS_execveat;
    const unsigned first = at ? 1 : 0;
    return execute(
        call.thread,
        {at ? static_cast<int>(call.arguments[0]) : AT_FDCWD, call.pointer<const char>(first),
         call.pointer<char* const>(first + 1), call.pointer<char* const>(first + 2),
         at ? static_cast<int>(call.arguments[4]) : 0});
}

long do_readlink(const Call& call, unsigned path_argument) {
    if (!is_own_executable(call.pointer<const char>(path_argument))) return pass_on(call);
    const std::string& path = call.process().program.executable;
    const std::size_t length =
        std::min<std::size_t>(path.size(), call.unsigned_argument(path_argument + 2));
    if (!write_target(call.unsigned_argument(path_argument + 1), path.data(), length))
        return -EFAULT;
    return static_cast<long>(length);
}

long do_open(Call call, unsigned path_argument) {
    show_own_executable(call, path_argument);
    return pass_on(call);
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
        call.process().actions.set(static_cast<int>(call.arguments[0]), wanted, &old);
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

long do_signal_suspend(const Call& call) {
    if (call.arguments[1] != kMaskBytes) return -EINVAL;
    std::uint64_t mask = 0;
    if (!read_target(call.unsigned_argument(0), &mask, sizeof mask)) return -EFAULT;
    call.process().lock.unlock();
    const long result = call.thread.signals.suspend(mask);
    call.process().lock.lock();
    return result;
}

long dispatch(const Call& call) {
    switch (call.number) {
        case SYS_brk:
            return do_break(call);
        case SYS_mmap:
            return do_map(call);
        case SYS_munmap:
            return do_unmap(call);
        case SYS_mprotect:
        case SYS_pkey_mprotect:
            return do_protect(call);
        case SYS_mremap:
            return do_remap(call);
        case SYS_madvise:
            return do_advise(call);
        case SYS_shmat:
            return do_attach(call);
        case SYS_shmdt:
            return do_detach(call);
        case SYS_arch_prctl:
            return do_arch_prctl(call);
        case SYS_rseq:
            return -ENOSYS;  // the driver's libc has registered its own
        case SYS_clone3:
            return -ENOSYS;  // libc falls back to clone
        case SYS_fork:
            return do_clone(call.thread, {.flags = SIGCHLD});
        case SYS_vfork:
            return do_clone(call.thread, {.flags = CLONE_VM | CLONE_VFORK | SIGCHLD});
        case SYS_clone:
            return do_clone(call.thread, {call.unsigned_argument(0), call.unsigned_argument(1),
                                          call.unsigned_argument(2), call.unsigned_argument(3),
                                          call.unsigned_argument(4)});
        case SYS_execve:
        case SYS_execveat:
            return do_execute(call);
        case SYS_close:
        case SYS_fcntl:
        case SYS_dup:
            return do_descriptor(call, call.arguments[0]);
        case SYS_dup2:
        case SYS_dup3:
            return do_descriptor(call, call.arguments[0], call.arguments[1]);
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
            return do_signal_suspend(call);
        case SYS_readlink:
            return do_readlink(call, 0);
        case SYS_readlinkat:
            return do_readlink(call, 1);
        case SYS_open:
            return do_open(call, 0);
        case SYS_openat:
            return do_open(call, 1);
        case SYS_exit:
            do_exit(call.thread, static_cast<int>(call.arguments[0]));
            return 0;
        case SYS_exit_group:
            call.thread.finish(static_cast<int>(call.arguments[0]));
        default:
            return pass_on(call);
    }
}

}  // namespace

bool is_own_executable(const char* path) {
    std::array<char, 64> own{};
    std::snprintf(own.data(), own.size(), "/proc/%d/exe", getpid());
    return path &&
           (std::strcmp(path, "/proc/self/exe") == 0 ||
            std::strcmp(path, "/proc/thread-self/exe") == 0 || std::strcmp(path, own.data()) == 0);
}

void do_syscall(Thread& thread, std::uint64_t syscall_pc) {
    constexpr std::uint64_t kSyscallBytes = 2;
    Context& context = *thread.context;
    const Call call{thread,
                    static_cast<long>(context.gpr[RAX]),
                    {static_cast<long>(context.gpr[RDI]), static_cast<long>(context.gpr[RSI]),
                     static_cast<long>(context.gpr[RDX]), static_cast<long>(context.gpr[R10]),
                     static_cast<long>(context.gpr[R8]), static_cast<long>(context.gpr[R9])}};
    context.pc = syscall_pc + kSyscallBytes;
    if (call.number == SYS_rt_sigreturn) {
        const std::uint32_t site = thread.stack_site();
        thread.signals.return_from_handler();
        return thread.record_stack(site);
    }
    context.gpr[RCX] = context.pc;
    context.gpr[R11] = context.rflags;
    const long result = dispatch(call);
    if (result == kNotCalled || (result == -EINTR && thread.signals.restarts(call.number))) {
        context.pc = syscall_pc;
        return;
    }
    context.gpr[RAX] = static_cast<std::uint64_t>(result);
}

}  // namespace assay::native
