#include "framework/driver/native/signals.h"

#include "framework/driver/native/assembler.h"
#include "framework/driver/native/cpu_levels.h"
#include "framework/driver/native/process.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace assay::native {
namespace {

Process* the_process = nullptr;

constexpr std::uint64_t kSaOnStack = 0x08000000, kSaRestart = 0x10000000, kSaNoDefer = 0x40000000,
                        kSaResetHand = 0x80000000, kSaSigInfo = 4, kSaRestorer = 0x04000000;
constexpr int kSynchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};

constexpr std::uint64_t mask_of(int number) {
    return 1ULL << (number - 1);
}

std::uint64_t synchronous_mask() {
    std::uint64_t mask = 0;
    for (const int number : kSynchronous) mask |= mask_of(number);
    return mask;
}

bool is_synchronous(int number) {
    return synchronous_mask() & mask_of(number);
}

long kernel_action(int number, const KernelAction* action) {
    return syscall(SYS_rt_sigaction, number, action, nullptr, 8);
}

// Number of an encoding -> index in ucontext's gregs.
constexpr int kGregs[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// The signal frame: arch/x86/include/asm/sigframe.h, struct rt_sigframe.
struct SigContext {
    std::uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
    std::uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
    std::uint16_t cs, gs, fs, ss;
    std::uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
};
struct Frame {
    std::uint64_t return_address;
    std::uint64_t uc_flags, uc_link;
    stack_t uc_stack;
    SigContext registers;
    std::uint64_t uc_sigmask;
    siginfo_t info;
};
static_assert(sizeof(SigContext) == 256);
static_assert(offsetof(Frame, info) == 8 + 304);

std::uint64_t SigContext::*const kFields[16] = {
    &SigContext::rax, &SigContext::rcx, &SigContext::rdx, &SigContext::rbx,
    &SigContext::rsp, &SigContext::rbp, &SigContext::rsi, &SigContext::rdi,
    &SigContext::r8,  &SigContext::r9,  &SigContext::r10, &SigContext::r11,
    &SigContext::r12, &SigContext::r13, &SigContext::r14, &SigContext::r15};

constexpr std::uint32_t kMagic1 = 0x46505853, kMagic2 = 0x46505845;  // FP_XSTATE_MAGIC1, 2
constexpr std::size_t kSoftwareBytes = 464;  // where struct _fpx_sw_bytes stands in FXSAVE

// Bytes of a standard-format XSAVE area with these components (SDM volume 1, 13.4.3).
std::uint32_t vector_bytes(std::uint64_t components) {
    std::uint32_t size = 576;
    for (unsigned i = 2; i < 63; ++i) {
        if (!(components >> i & 1)) continue;
        unsigned bytes = 0, offset = 0, c = 0, d = 0;
        __cpuid_count(0xd, i, bytes, offset, c, d);
        size = std::max(size, offset + bytes);
    }
    return size;
}

// System calls that a signal handler always interrupts, SA_RESTART or not: signal(7).
bool never_restarts(long number) {
    switch (number) {
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
        case SYS_poll:
        case SYS_ppoll:
        case SYS_select:
        case SYS_pselect6:
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
        case SYS_pause:
        case SYS_rt_sigsuspend:
        case SYS_rt_sigtimedwait:
        case SYS_semop:
        case SYS_semtimedop:
        case SYS_msgrcv:
        case SYS_msgsnd:
            return true;
        default:
            return false;
    }
}

}  // namespace

void Signals::initialise() {
    the_process = &process_;
    constexpr std::size_t kStackBytes = 256 * 1024;
    stack_t stack{};
    stack.ss_sp =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack.ss_size = kStackBytes;
    sigaltstack(&stack, nullptr);
    stack_.ss_flags = SS_DISABLE;
    for (int number = 1; number <= 64; ++number)
        syscall(SYS_rt_sigaction, number, nullptr, &actions_[number], 8);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask_, 8);
    for (const int number : kSynchronous) {
        const KernelAction action{reinterpret_cast<std::uint64_t>(&Signals::handle),
                                  kSaSigInfo | kSaOnStack | kSaRestorer,
                                  reinterpret_cast<std::uint64_t>(&assay_signal_return), ~0ULL};
        kernel_action(number, &action);
    }
    apply_mask();
}

// Translated code runs with the target's fs base, C++ code needs the driver's. The context knows
// both; which one is set tells who was interrupted.
void Signals::handle(int number, siginfo_t* info, void* ucontext) {
    const std::uint64_t fs = _readfsbase_u64();
    _writefsbase_u64(the_process->context->driver_fs);
    the_process->signals.on_signal(number, info, static_cast<ucontext_t*>(ucontext));
    _writefsbase_u64(fs);
}

void Signals::on_signal(int number, siginfo_t* info, ucontext_t* interrupted) {
    auto& pc = interrupted->uc_mcontext.gregs[REG_RIP];
    const auto host_pc = static_cast<std::uint64_t>(pc);
    const bool translated = process_.cache.contains(host_pc);
    if (is_synchronous(number) && info->si_code > 0) {
        if (translated && continue_in_next_buffer(info, interrupted)) return;
        if (translated && note_fault(number, info, interrupted)) return;
        process_.refuse("internal error: signal " + std::to_string(number) +
                        " in the driver itself, target pc " + std::to_string(process_.context->pc));
    }
    std::uint64_t waiting = ~synchronous_mask();
    if (pending_) {
        // What is back in the kernel stays there: two of them would take turns forever.
        std::uint64_t before = 0;
        std::memcpy(&before, &interrupted->uc_sigmask, sizeof before);
        waiting |= before | mask_of(number);
    }
    std::memcpy(&interrupted->uc_sigmask, &waiting, sizeof waiting);
    if (pending_) {
        // One that was sent, not a fault: the kernel keeps it until there is a place for it.
        syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), number, info);
        return;
    }
    note(number, info);
    const auto sp = static_cast<std::uint64_t>(interrupted->uc_mcontext.gregs[REG_RSP]);
    const Unit* unit = translated ? process_.cache.unit_behind(host_pc, sp) : entering_;
    if (unit != nullptr) {
        process_.cache.divert(*unit);
        diverted_ = unit;
    }
    if (host_pc >= reinterpret_cast<std::uint64_t>(assay_syscall_begin) &&
        host_pc < reinterpret_cast<std::uint64_t>(assay_syscall_end))
        pc = reinterpret_cast<greg_t>(assay_syscall_interrupted);
}

// The store that began a record ran into the end of the buffer: mov [register], reg or constant.
bool Signals::continue_in_next_buffer(const siginfo_t* info, ucontext_t* interrupted) {
    const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
    if (!process_.trace.is_buffer_end(address)) return false;
    const auto* code =
        reinterpret_cast<const std::uint8_t*>(interrupted->uc_mcontext.gregs[REG_RIP]);
    unsigned rex = 0;
    if ((*code & 0xf0) == 0x40) rex = *code++;
    if (code[0] != kStore && code[0] != kStoreConstant) return false;
    const unsigned base = (code[1] & 7U) | (rex & 1U) << 3;
    interrupted->uc_mcontext.gregs[kGregs[base]] =
        static_cast<greg_t>(process_.trace.next_buffer());
    if (!pending_) process_.translator.adapt();
    return true;
}

bool Signals::note_fault(int number, const siginfo_t* info, ucontext_t* interrupted) {
    auto& gregs = interrupted->uc_mcontext.gregs;
    const auto host_pc = static_cast<std::uint64_t>(gregs[REG_RIP]);
    // A breakpoint is reported behind the instruction.
    const unsigned behind = number == SIGTRAP ? 1 : 0;
    const FaultState state = process_.translator.recover(host_pc - behind);
    if (!state.known) return false;
    Context& context = *process_.context;
    for (unsigned reg = 0; reg < 16; ++reg)
        if (state.scratch.saved & bit(reg)) {
            if (reg == state.scratch.cursor)
                process_.trace.set_cursor(static_cast<std::uint64_t>(gregs[kGregs[reg]]));
            gregs[kGregs[reg]] = static_cast<greg_t>(context.gpr[reg]);
        } else if (reg == state.scratch.cursor) {
            process_.trace.set_cursor(static_cast<std::uint64_t>(gregs[kGregs[reg]]));
        }
    // The push of the return address found no stack.
    if (state.rcx_is_target) gregs[REG_RCX] = static_cast<greg_t>(context.indirect_rcx);
    // Behind a signal that waits, the instruction will be executed again.
    const bool again = pending_ != 0;
    const std::uint32_t executed = state.executed - (again ? 1 : 0);
    const trace_block_t block = process_.trace.block(state.block);
    if (executed != block.instr_count || !state.counted)
        process_.trace.partial(state.block, executed, state.counted);
    context.pc = state.pc + (again ? 0 : behind);
    context.exit_id = kFault;
    if (!again) {
        note(number, info);
        fault_ = true;
        fault_error_ = static_cast<std::uint64_t>(gregs[REG_ERR]);
        fault_trap_ = static_cast<std::uint64_t>(gregs[REG_TRAPNO]);
    }
    // The way out that translated code itself takes: it puts the registers into the context.
    gregs[REG_RIP] = static_cast<greg_t>(context.exit_glue);
    std::memset(&interrupted->uc_sigmask, 0xff, 8);
    return true;
}

void Signals::note(int number, const siginfo_t* info) {
    info_ = *info;
    fault_ = false;
    pending_ = number;
}

void Signals::raise_fault(int number, int code, std::uint64_t address) {
    siginfo_t info{};
    info.si_signo = number;
    info.si_code = code;
    info.si_addr = reinterpret_cast<void*>(address);
    block_all();
    if (pending_) return;  // the other one first: the fault happens again
    note(number, &info);
    fault_ = true;
    fault_error_ = number == SIGSEGV ? 0x14 : 0;  // an instruction fetch from user mode
    fault_trap_ = number == SIGSEGV ? 14 : 6;
}

void Signals::divert_if_pending(const Unit& unit) {
    entering_ = &unit;
    if (!pending_) return;
    process_.cache.divert(unit);
    diverted_ = &unit;
}

void Signals::left() {
    entering_ = nullptr;
    if (diverted_ == nullptr) return;
    process_.cache.restore(*diverted_);
    diverted_ = nullptr;
}

void Signals::block_all() const {
    const std::uint64_t all = ~0ULL;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, 8);
}

void Signals::apply_mask() const {
    const std::uint64_t mask = mask_ & ~synchronous_mask();
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, 8);
}

void Signals::give_mask_to_kernel() const {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask_, nullptr, 8);
}

void Signals::deliver() {
    // A frame that cannot be written ends the process, as it does natively; nor may what is sent
    // meanwhile overwrite the note.
    block_all();
    const int number = pending_;
    pending_ = 0;
    const KernelAction action = actions_[number];
    // A fault while its signal is blocked or ignored ends the process: force_sig_fault().
    const bool forced = fault_ && (mask_ & mask_of(number) || action.handler == 1);
    if (action.handler == 0 || forced) die_of(number);
    if (action.handler == 1) return apply_mask();
    if (action.flags & kSaResetHand) actions_[number] = KernelAction{};
    push_frame(action, number);
    mask_ |= action.mask;
    if (!(action.flags & kSaNoDefer)) mask_ |= mask_of(number);
    apply_mask();
}

void Signals::push_frame(const KernelAction& action, int number) {
    Context& context = *process_.context;
    constexpr std::uint64_t kRedZone = 128;
    std::uint64_t sp = context.gpr[RSP] - kRedZone;
    const auto stack_begin = reinterpret_cast<std::uint64_t>(stack_.ss_sp);
    const bool on_stack =
        !(stack_.ss_flags & SS_DISABLE) && context.gpr[RSP] - stack_begin < stack_.ss_size;
    if (action.flags & kSaOnStack && !(stack_.ss_flags & SS_DISABLE) && !on_stack)
        sp = stack_begin + stack_.ss_size;
    const std::uint64_t components =
        context.vector_mask & level_xcr0(process_.trace.spec().cpu_level);
    const std::uint32_t bytes = vector_bytes(components);
    const std::uint64_t vectors = (sp - bytes - 4) & ~63ULL;
    sp = ((vectors - sizeof(Frame)) & ~15ULL) - 8;

    auto* area = reinterpret_cast<unsigned char*>(vectors);
    std::memcpy(area, context.vector_state, bytes);
    std::uint32_t software[12] = {kMagic1, bytes + 4, static_cast<std::uint32_t>(components), 0,
                                  bytes};
    std::memcpy(area + kSoftwareBytes, software, sizeof software);
    std::memcpy(area + bytes, &kMagic2, sizeof kMagic2);

    auto& frame = *reinterpret_cast<Frame*>(sp);
    frame = Frame{};
    frame.return_address = action.restorer;
    frame.uc_flags = 7;  // UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
    frame.uc_stack = stack_;
    frame.uc_stack.ss_flags |= on_stack ? SS_ONSTACK : 0;
    for (unsigned reg = 0; reg < 16; ++reg) frame.registers.*kFields[reg] = context.gpr[reg];
    frame.registers.rip = context.pc;
    frame.registers.eflags = context.rflags;
    frame.registers.cs = 0x33;
    frame.registers.ss = 0x2b;
    frame.registers.err = fault_ ? fault_error_ : 0;
    frame.registers.trapno = fault_ ? fault_trap_ : 0;
    frame.registers.cr2 = fault_ ? reinterpret_cast<std::uint64_t>(info_.si_addr) : 0;
    frame.registers.oldmask = frame.uc_sigmask = mask_;
    frame.registers.fpstate = vectors;
    frame.info = info_;

    context.gpr[RSP] = sp;
    context.gpr[RDI] = static_cast<std::uint64_t>(number);
    context.gpr[RSI] = reinterpret_cast<std::uint64_t>(&frame.info);
    context.gpr[RDX] = reinterpret_cast<std::uint64_t>(&frame.uc_flags);
    context.gpr[RAX] = 0;
    context.pc = action.handler;
    context.rflags &= ~0x10500ULL;  // TF, DF, RF
    std::memset(context.vector_state, 0, bytes);
    constexpr std::uint32_t kInitialMxcsr = 0x1f80;
    std::memcpy(context.vector_state + 24, &kInitialMxcsr, sizeof kInitialMxcsr);
}

// rt_sigreturn(2): the return from the handler has popped the frame's first word.
bool Signals::return_from_handler() {
    Context& context = *process_.context;
    const auto& frame = *reinterpret_cast<const Frame*>(context.gpr[RSP] - 8);
    for (unsigned reg = 0; reg < 16; ++reg) context.gpr[reg] = frame.registers.*kFields[reg];
    context.pc = frame.registers.rip;
    constexpr std::uint64_t kUserFlags = 0x50dd5;  // FIX_EFLAGS
    context.rflags = (context.rflags & ~kUserFlags) | (frame.registers.eflags & kUserFlags);
    mask_ = frame.uc_sigmask & ~(mask_of(SIGKILL) | mask_of(SIGSTOP));
    if (frame.registers.fpstate != 0) {
        const std::uint64_t components =
            context.vector_mask & level_xcr0(process_.trace.spec().cpu_level);
        const std::uint32_t bytes = vector_bytes(components);
        std::memcpy(context.vector_state, reinterpret_cast<const void*>(frame.registers.fpstate),
                    bytes);
        std::memset(context.vector_state + kSoftwareBytes, 0, 48);
        std::uint64_t header[8];
        std::memcpy(header, context.vector_state + 512, sizeof header);
        header[0] &= components;
        std::fill(header + 1, header + 8, 0);
        std::memcpy(context.vector_state + 512, header, sizeof header);
    }
    apply_mask();
    return true;
}

long Signals::set_action(int number, const KernelAction* action, KernelAction* old) {
    if (number < 1 || number > 64) return -EINVAL;
    if (action && (number == SIGKILL || number == SIGSTOP)) return -EINVAL;
    const KernelAction before = actions_[number];
    if (action) {
        if (!is_synchronous(number)) {
            KernelAction kernel = *action;
            if (action->handler > 1)
                kernel = {reinterpret_cast<std::uint64_t>(&Signals::handle),
                          kSaSigInfo | kSaOnStack | kSaRestorer | (action->flags & 7 & ~kSaSigInfo),
                          reinterpret_cast<std::uint64_t>(&assay_signal_return), ~0ULL};
            if (kernel_action(number, &kernel) != 0) return -errno;
        }
        actions_[number] = *action;
        actions_[number].mask &= ~(mask_of(SIGKILL) | mask_of(SIGSTOP));
    }
    if (old) *old = before;
    return 0;
}

long Signals::set_mask(int how, const std::uint64_t* set, std::uint64_t* old, std::uint64_t size) {
    if (size != 8) return -EINVAL;
    const std::uint64_t before = mask_;
    if (set) {
        if (how == SIG_BLOCK)
            mask_ |= *set;
        else if (how == SIG_UNBLOCK)
            mask_ &= ~*set;
        else if (how == SIG_SETMASK)
            mask_ = *set;
        else
            return -EINVAL;
        mask_ &= ~(mask_of(SIGKILL) | mask_of(SIGSTOP));
        if (!pending_) apply_mask();
    }
    if (old) *old = before;
    return 0;
}

long Signals::set_stack(const stack_t* stack, stack_t* old) {
    const stack_t before = stack_;
    const bool on_stack =
        !(stack_.ss_flags & SS_DISABLE) &&
        process_.context->gpr[RSP] - reinterpret_cast<std::uint64_t>(stack_.ss_sp) < stack_.ss_size;
    if (stack) {
        if (on_stack) return -EPERM;
        if (!(stack->ss_flags & SS_DISABLE) && stack->ss_size < 2048) return -ENOMEM;
        stack_ = *stack;
    }
    if (old) {
        *old = before;
        if (on_stack) old->ss_flags |= SS_ONSTACK;
    }
    return 0;
}

long Signals::suspend(const std::uint64_t* mask, std::uint64_t size) {
    if (size != 8) return -EINVAL;
    const std::uint64_t kernel = *mask & ~synchronous_mask();
    const long arguments[6] = {reinterpret_cast<long>(&kernel), 8, 0, 0, 0, 0};
    return assay_interruptible_syscall(pending_flag(), SYS_rt_sigsuspend, arguments);
}

bool Signals::restarts(long number) const {
    return pending_ && actions_[pending_].flags & kSaRestart && !never_restarts(number);
}

void Signals::die_of(int number) {
    process_.trace.set_state(trace::DriverState::kFinished);
    const KernelAction standard{};
    kernel_action(number, &standard);
    const std::uint64_t mask = ~mask_of(number);
    syscall(SYS_kill, getpid(), number);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, 8);
    // A signal whose default is to stop or to be ignored does not get here.
    _exit(128 + number);
}

}  // namespace assay::native
