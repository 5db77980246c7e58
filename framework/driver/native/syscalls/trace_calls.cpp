// ptrace(2). A tracer of a translated program would find the driver's code, registers and signals,
// so processes that run in a driver cannot be attached to. Three common cases work:
//
//  - A child asks to be traced (PTRACE_TRACEME) and executes a program, like a debugger's child.
//    The new program runs natively and is traced.
//  - Before it executes, such a child gets a signal or stops itself. The kernel traces the child
//    from there until its tracer resumes it. The tracer only learns of signals, not of system
//    calls, steps or events. It reads the registers from the child's context, at gs.
//  - A process attaches to the threads of a process whose memory it shares (CLONE_VM), reads their
//    registers, and detaches: LeakSanitizer's StopTheWorld. A thread that is attached to stops
//    where its registers are in its context. It does not hold the driver's lock, which the tracer
//    needs.
#include "framework/driver/native/machine/saved_state.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/process/thread.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

namespace assay::native {
namespace {

std::string name_of(long request) {
    switch (request) {
        case PTRACE_ATTACH:
            return "PTRACE_ATTACH";
        case PTRACE_SEIZE:
            return "PTRACE_SEIZE";
        case PTRACE_SYSCALL:
            return "PTRACE_SYSCALL";
        case PTRACE_SINGLESTEP:
            return "PTRACE_SINGLESTEP";
        case PTRACE_SETOPTIONS:
            return "PTRACE_SETOPTIONS";
        case PTRACE_SETREGS:
            return "PTRACE_SETREGS";
        case PTRACE_GET_SYSCALL_INFO:
            return "PTRACE_GET_SYSCALL_INFO";
        default:
            return std::to_string(request);
    }
}

std::string refusal(const Call& call) {
    return "ptrace(" + name_of(call.arguments[0]) + "): process " +
           std::to_string(call.arguments[1]) + " runs under assay and cannot be traced";
}

long deny(const Call& call, long error) {
    call.process().trace.message(refusal(call));
    return error;
}

// --- Threads of another process that shares the memory.

void give_lock_away_for_a_moment(Process& process) {
    constexpr timespec kMoment{0, 100'000};
    process.lock.unlock();
    nanosleep(&kMoment, nullptr);
    process.lock.lock();
}

// Waits for the signal of PTRACE_ATTACH, and leaves it for the tracer's own waitid(2). Earlier
// signals go on to the thread, because most of them are the driver's.
void wait_until_stopped(pid_t tid) {
    const auto id = static_cast<id_t>(tid);
    siginfo_t info{};
    for (;;) {
        if (waitid(P_PID, id, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL) != 0) {
            if (errno != EINTR) return;
        } else if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
            return;  // it has ended
        } else if (info.si_status == SIGSTOP) {
            return;
        } else if (waitid(P_PID, id, &info, WSTOPPED | __WALL) == 0) {
            syscall(SYS_ptrace, PTRACE_CONT, tid, 0, info.si_status);
        }
    }
}

// Holds the lock from the moment when the thread is outside of translated code until it stops.
long attach(const Call& call) {
    Process& process = call.process();
    const auto tid = static_cast<pid_t>(call.arguments[1]);
    process.wait_for_ended_threads();
    Thread* traced = process.running_thread(tid);
    while (traced != nullptr && (traced->relations.lent_to_child || !traced->hold())) {
        give_lock_away_for_a_moment(process);
        traced = process.running_thread(tid);
    }
    const long result = pass_on_locked(call);
    if (!is_error(result)) wait_until_stopped(tid);
    if (traced != nullptr) traced->let_go();
    return result;
}

user_regs_struct user_registers_of(const Context& context) {
    constexpr unsigned long long kUserCode = 0x33, kUserData = 0x2b;  // asm/segment.h
    user_regs_struct out{};
    out.rax = context.gpr[RAX];
    out.rcx = context.gpr[RCX];
    out.rdx = context.gpr[RDX];
    out.rbx = context.gpr[RBX];
    out.rsp = context.gpr[RSP];
    out.rbp = context.gpr[RBP];
    out.rsi = context.gpr[RSI];
    out.rdi = context.gpr[RDI];
    out.r8 = context.gpr[R8];
    out.r9 = context.gpr[R9];
    out.r10 = context.gpr[R10];
    out.r11 = context.gpr[R11];
    out.r12 = context.gpr[R12];
    out.r13 = context.gpr[R13];
    out.r14 = context.gpr[R14];
    out.r15 = context.gpr[R15];
    out.orig_rax = static_cast<unsigned long long>(-1);
    out.rip = context.pc;
    out.eflags = context.rflags;
    out.cs = kUserCode;
    out.ss = kUserData;
    out.fs_base = context.target_fs;
    out.gs_base = context.target_gs;
    return out;
}

// The offset of the component mask in the register set for tracers (arch/x86/include/asm/user.h,
// USER_XSTATE_XCR0_WORD).
constexpr std::size_t kXcr0InState = 464;

// Overwrites the driver's registers in `set`, which the kernel has filled, with the program's.
void replace_registers(const Context& context, long type, unsigned char* set, std::size_t bytes) {
    if (type != NT_PRSTATUS) return write_out(context, set, bytes);
    const user_regs_struct registers = user_registers_of(context);
    std::memcpy(set, &registers, std::min(bytes, sizeof registers));
}

// Like PTRACE_GETREGSET: stores at most `wanted.iov_len` bytes, and sets `bytes` to the number.
long read_registers(const Context& context, long tid, long type, const iovec& wanted,
                    std::size_t& bytes) {
    if (type != NT_PRSTATUS && type != NT_PRFPREG && type != NT_X86_XSTATE) return -EINVAL;
    const bool is_state = type == NT_X86_XSTATE;
    if (is_state && context.frame_bytes == kLegacyBytes) return -ENODEV;
    std::array<unsigned char, 16 * 1024> set{};
    iovec into{set.data(), std::min(wanted.iov_len, set.size())};
    if (syscall(SYS_ptrace, PTRACE_GETREGSET, tid, type, &into) != 0) return -errno;
    replace_registers(context, type, set.data(), into.iov_len);
    if (is_state)
        std::memcpy(set.data() + kXcr0InState, &context.frame_components,
                    sizeof context.frame_components);
    bytes = is_state ? std::min(into.iov_len, context.frame_bytes) : into.iov_len;
    return write_target(reinterpret_cast<std::uint64_t>(wanted.iov_base), set.data(), bytes)
               ? 0
               : -EFAULT;
}

long get_registers(const Call& call, const Context& context, long type, std::size_t size) {
    std::size_t bytes = 0;
    return read_registers(context, call.arguments[1], type, {call.pointer<void>(3), size}, bytes);
}

long get_register_set(const Call& call, const Context& context) {
    iovec wanted{};
    if (!read_target(call.unsigned_argument(3), &wanted, sizeof wanted)) return -EFAULT;
    const long result =
        read_registers(context, call.arguments[1], call.arguments[2], wanted, wanted.iov_len);
    if (result != 0) return result;
    return write_target(call.unsigned_argument(3), &wanted, sizeof wanted) ? 0 : -EFAULT;
}

// PTRACE_GETREGS, PTRACE_GETFPREGS, PTRACE_GETREGSET.
long look_at_registers(const Call& call, const Context& context) {
    switch (call.arguments[0]) {
        case PTRACE_GETREGS:
            return get_registers(call, context, NT_PRSTATUS, sizeof(user_regs_struct));
        case PTRACE_GETFPREGS:
            return get_registers(call, context, NT_PRFPREG, sizeof(user_fpregs_struct));
        default:
            return get_register_set(call, context);
    }
}

long trace_relative(const Call& call) {
    const Thread* traced = call.process().running_thread(static_cast<pid_t>(call.arguments[1]));
    switch (call.arguments[0]) {
        case PTRACE_ATTACH:
            return attach(call);
        case PTRACE_GETREGS:
        case PTRACE_GETFPREGS:
        case PTRACE_GETREGSET:
            return traced == nullptr ? pass_on(call) : look_at_registers(call, *traced->context);
        case PTRACE_CONT:
        case PTRACE_DETACH:
        case PTRACE_KILL:
        case PTRACE_PEEKDATA:
        case PTRACE_PEEKTEXT:
        case PTRACE_POKEDATA:
        case PTRACE_POKETEXT:
        case PTRACE_GETSIGINFO:
        case PTRACE_GETEVENTMSG:
        case PTRACE_SETOPTIONS:
            return pass_on(call);
        case PTRACE_SEIZE:
            return deny(call, -EPERM);
        default:
            return deny(call, -EIO);
    }
}

// --- Stopped children that have asked to be traced.

// A copy of the part of a stopped child's context that has the program's registers. Returns
// nullptr, and sets errno, if the child is not stopped.
std::unique_ptr<Context> context_of(pid_t child) {
    user_regs_struct own{};
    if (syscall(SYS_ptrace, PTRACE_GETREGS, child, 0, &own) != 0) return nullptr;
    auto context = std::make_unique<Context>();
    const iovec to{context.get(), offsetof(Context, indirect_table)};
    const iovec from{reinterpret_cast<void*>(own.gs_base), to.iov_len};
    if (process_vm_readv(child, &to, 1, &from, 1, 0) != static_cast<ssize_t>(to.iov_len))
        return nullptr;
    return context;
}

long peek_at_registers(const Call& call, const Context& context) {
    const std::uint64_t offset = call.unsigned_argument(2);
    if (offset % sizeof(long) != 0 || offset >= sizeof(user)) return -EIO;
    if (offset >= sizeof(user_regs_struct)) return pass_on(call);
    const user_regs_struct registers = user_registers_of(context);
    return write_target(call.unsigned_argument(3),
                        reinterpret_cast<const char*>(&registers) + offset, sizeof(long))
               ? 0
               : -EFAULT;
}

long look_at_child(const Call& call) {
    const auto context = context_of(static_cast<pid_t>(call.arguments[1]));
    if (context == nullptr) return -errno;
    if (call.arguments[0] == PTRACE_PEEKUSER) return peek_at_registers(call, *context);
    return look_at_registers(call, *context);
}

// Detaches until the next signal, because the driver's own signals would stop a traced child.
long let_child_go_on(Call call) {
    call.arguments[0] = PTRACE_DETACH;
    call.arguments[2] = 0;
    return pass_on_locked(call);
}

long let_child_go(const Call& call) {
    syscall(SYS_ptrace, PTRACE_POKEUSER, call.arguments[1], offsetof(user_regs_struct, rax),
            kLetGo);
    return pass_on_locked(call);
}

long trace_child(const Call& call) {
    constexpr long kWithoutEvents = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD;
    switch (call.arguments[0]) {
        case PTRACE_CONT:
            return let_child_go_on(call);
        case PTRACE_DETACH:
            return let_child_go(call);
        case PTRACE_GETREGS:
        case PTRACE_GETFPREGS:
        case PTRACE_GETREGSET:
        case PTRACE_PEEKUSER:
            return look_at_child(call);
        case PTRACE_KILL:
        case PTRACE_PEEKDATA:
        case PTRACE_PEEKTEXT:
        case PTRACE_POKEDATA:
        case PTRACE_POKETEXT:
        case PTRACE_GETSIGINFO:
        case PTRACE_SETSIGINFO:
        case PTRACE_PEEKSIGINFO:
        case PTRACE_GETEVENTMSG:
            return pass_on(call);
        case PTRACE_SETOPTIONS:
            if ((call.arguments[3] & ~kWithoutEvents) == 0) return pass_on(call);
            [[fallthrough]];
        default:
            if (context_of(static_cast<pid_t>(call.arguments[1])) == nullptr) return -errno;
            call.thread.refuse(refusal(call));
    }
}

bool sends_itself(const Call& call, unsigned last) {
    const long whom = call.arguments[last - 1];
    return whom == getpid() || whom == gettid();
}

}  // namespace

long do_trace(const Call& call) {
    const long request = call.arguments[0], pid = call.arguments[1];
    if (request == PTRACE_TRACEME) {
        if (call.thread.relations.tracer != kNoTracer) return -EPERM;
        call.thread.relations.tracer = getppid();
        call.thread.relations.actions->let_all_arrive(true);
        return 0;
    }
    if (call.process().shares_memory_with(static_cast<pid_t>(pid))) return trace_relative(call);
    if (!runs_in_driver(pid)) return pass_on(call);
    if (request == PTRACE_ATTACH || request == PTRACE_SEIZE) return deny(call, -EPERM);
    return trace_child(call);
}

// kill, tkill, tgkill. SIGSTOP has no handler, so the driver stops for the tracer here.
long do_kill(const Call& call) {
    const unsigned last = call.number == SYS_tgkill ? 2 : 1;
    Thread& thread = call.thread;
    if (thread.relations.tracer == kNoTracer || call.arguments[last] != SIGSTOP ||
        !sends_itself(call, last) || !begin_stop_for_tracer(thread))
        return pass_on(call);
    Signals::block_all();
    thread.process.schedule.go_away(thread);
    thread.process.lock.unlock();
    const long result =
        syscall(call.number, call.arguments[0], call.arguments[1], call.arguments[2]);
    thread.process.lock.lock();
    thread.process.schedule.come_back(thread);
    end_stop_for_tracer(thread, result);
    thread.signals.restore_mask_in_kernel();
    return 0;
}

}  // namespace assay::native
