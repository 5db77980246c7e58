// What happens in the kernel's handler: signals arrive, faults are understood, and translated code
// is left, if need be by single steps. The rest: signal_delivery.cpp.
#include "framework/driver/native/process/signals.h"

#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/process/process.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace assay::native {
namespace {

constexpr std::uint64_t kTrapFlag = 0x100;
constexpr greg_t kWriteFault = 2;  // in the error code of a page fault

bool is_synchronous(int number) {
    return kSynchronousSignals & mask_of(number);
}

// Number of an encoding -> index in ucontext's gregs.
constexpr int kGregs[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

std::uint64_t pc_of(const ucontext_t* interrupted) {
    return static_cast<std::uint64_t>(interrupted->uc_mcontext.gregs[REG_RIP]);
}

void set_pc(ucontext_t* interrupted, std::uint64_t pc) {
    interrupted->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(pc);
}

void set_trap_flag(ucontext_t* interrupted, bool on) {
    auto& flags = interrupted->uc_mcontext.gregs[REG_EFL];
    flags = on ? flags | static_cast<greg_t>(kTrapFlag) : flags & ~static_cast<greg_t>(kTrapFlag);
}

void set_mask_of(ucontext_t* interrupted, std::uint64_t mask) {
    std::memcpy(&interrupted->uc_sigmask, &mask, sizeof mask);
}

bool is_between(std::uint64_t pc, const void* begin, const void* end) {
    return pc >= reinterpret_cast<std::uint64_t>(begin) &&
           pc < reinterpret_cast<std::uint64_t>(end);
}

// int1 is reported behind it as int3 is, but by some hypervisors at it.
bool is_at_int1(std::uint64_t pc) {
    constexpr std::uint8_t kInt1 = 0xf1, kInt3 = 0xcc;
    const auto* code = reinterpret_cast<const std::uint8_t*>(pc);
    return code[0] == kInt1 && code[-1] != kInt1 && code[-1] != kInt3;
}

template <typename Argument>
const void* address_of(void (*function)(Argument*)) {
    return reinterpret_cast<const void*>(function);
}

// The kernel leaves that flag as it was (arch/x86/kernel/signal.c, handle_signal), and with it the
// driver's unaligned accesses would fault.
void clear_alignment_check() {
    constexpr std::uint64_t kInterruptsOnly = 0x202;
    __builtin_ia32_writeeflags_u64(kInterruptsOnly);
}

}  // namespace

// QEMU's user mode, as of 7.2, does not align the stack of handlers as the psABI (3.2.2) says.
[[gnu::force_align_arg_pointer]] void Signals::handle(int number, siginfo_t* info, void* ucontext) {
    clear_alignment_check();
    Thread& thread = this_thread();
    Signals& signals = thread.signals;
    auto* interrupted = static_cast<ucontext_t*>(ucontext);
    // As if the signal had come before the one whose handler is about to end.
    if (is_between(pc_of(interrupted), address_of(assay_resume), assay_resume_end))
        interrupted = signals.resumed_;
    signals.on_signal(number, info, interrupted);
    signals.resumed_ = interrupted;
    if (thread.process.filters_calls) assay_resume(interrupted);
}

void Signals::on_signal(int number, siginfo_t* info, ucontext_t* interrupted) {
    if (stopped_by_tracer_) {
        set_mask_of(interrupted, kAllSignals);
        return note(number, info);
    }
    if (is_fault(number, *info, pc_of(interrupted))) return on_fault(number, info, interrupted);
    if (Stress::is_interruption(number, *info)) return interrupt(interrupted);
    if (number == SIGTRAP && info->si_code == SI_QUEUE && info->si_ptr == this) {
        asked_ = true;
        if (!stepping_) come_back(interrupted);
        return;
    }
    if (is_refusal(number, *info)) {
        // What the driver's code finds where it waits for a result: of brk(2) it is no error
        // number.
        interrupted->uc_mcontext.gregs[REG_RAX] = info->si_syscall == SYS_brk ? 0 : -ENOSYS;
        if (info->si_syscall != calling_) return;
    }
    if (is_synchronous(number) && blocks(number)) {
        held_.hold(number, *info);
        // A system call that is about to begin has not lent it.
        if (is_between(pc_of(interrupted), assay_syscall_begin, assay_syscall_end))
            set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_syscall_interrupted));
        return;
    }
    if (pending_) return requeue(number, info, interrupted);
    set_mask_of(interrupted, ~kSynchronousSignals);
    note(number, info);
    come_back(interrupted);
}

// A process may send itself what looks like a fault: rt_tgsigqueueinfo(2). That arrives behind a
// system call of the driver's, where no fault is.
bool Signals::is_fault(int number, const siginfo_t& info, std::uint64_t host_pc) const {
    if (!is_synchronous(number) || info.si_code <= 0) return false;
    const auto* before = reinterpret_cast<const std::uint8_t*>(host_pc) - 2;
    return thread_.process.cache.contains(host_pc) || before[0] != 0x0f || before[1] != 0x05;
}

// Translated code comes back at the end of a basic block, and a system call does not begin.
void Signals::come_back(ucontext_t* interrupted) {
    const std::uint64_t host_pc = pc_of(interrupted);
    if (thread_.process.cache.contains(host_pc)) {
        // A string instruction that already runs aside is on its way.
        if (after_string_ == 0 && !leave_at_entry(interrupted)) step_from(interrupted);
    } else if (entering_) {
        thread_.context->rflags |= kTrapFlag;
        stepping_ = true;
        if (is_between(host_pc, address_of(assay_enter), assay_enter_end))
            set_trap_flag(interrupted, true);
    } else if (is_between(host_pc, assay_syscall_begin, assay_syscall_end)) {
        set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_syscall_interrupted));
    }
}

// Makes translated code come back, for nothing.
void Signals::interrupt(ucontext_t* interrupted) {
    if (stepping_ || !thread_.process.cache.contains(pc_of(interrupted))) return;
    if (!leave_at_entry(interrupted)) step_from(interrupted);
}

// One that was sent, not a fault: the kernel keeps it until there is a place for it. What is back
// in the kernel stays there: two of them would take turns forever.
void Signals::requeue(int number, siginfo_t* info, ucontext_t* interrupted) const {
    std::uint64_t before = 0;
    std::memcpy(&before, &interrupted->uc_sigmask, sizeof before);
    set_mask_of(interrupted, before | ~kSynchronousSignals | mask_of(number));
    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), number, info);
}

void Signals::on_fault(int number, const siginfo_t* info, ucontext_t* interrupted) {
    const std::uint64_t host_pc = pc_of(interrupted);
    // Rarely the kernel calls a single step TRAP_BRKPT; a breakpoint of the program's has
    // SI_KERNEL.
    const bool stepped =
        info->si_code == TRAP_TRACE || info->si_code == TRAP_BRKPT || after_string_ != 0;
    if (number == SIGTRAP && stepping_ && stepped) return on_step(interrupted);
    const bool copying =
        is_between(host_pc, reinterpret_cast<const void*>(&assay_copy), assay_copy_end);
    const bool translated = thread_.process.cache.contains(host_pc);
    if (translated && continue_in_next_buffer(info, interrupted)) return;
    // Copies that only read are made without the lock, too.
    const bool writes = interrupted->uc_mcontext.gregs[REG_ERR] & kWriteFault;
    if (number == SIGSEGV && info->si_code == SEGV_ACCERR && writes && (translated || copying) &&
        let_write(info, interrupted))
        return;
    if (copying) return set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_copy_end));
    if (is_between(host_pc, reinterpret_cast<const void*>(&assay_touch), assay_touch_end))
        return set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_touch_end));
    if (translated && note_fault(number, info, interrupted)) return;
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  "internal error: signal %d in the driver itself, at 0x%llx for address 0x%llx, "
                  "target pc 0x%llx",
                  number, static_cast<unsigned long long>(host_pc),
                  static_cast<unsigned long long>(reinterpret_cast<std::uint64_t>(info->si_addr)),
                  static_cast<unsigned long long>(thread_.context->pc));
    thread_.refuse(text.data());
}

// The store that began a record, or the last of several, ran into the end of the buffer:
// mov [register + displacement], reg or constant.
bool Signals::continue_in_next_buffer(const siginfo_t* info, ucontext_t* interrupted) {
    const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
    if (!thread_.trace.is_behind_buffer(address)) return false;
    const auto* code = reinterpret_cast<const std::uint8_t*>(pc_of(interrupted));
    unsigned rex = 0;
    if ((*code & 0xf0) == 0x40) rex = *code++;
    if (code[0] != kStore && code[0] != kStoreConstant) return false;
    const unsigned base = (code[1] & 7U) | (rex & 1U) << 3;
    greg_t& cursor = interrupted->uc_mcontext.gregs[kGregs[base]];
    cursor = static_cast<greg_t>(thread_.trace.next_buffer(static_cast<std::uint64_t>(cursor)));
    DriverLock& lock = thread_.process.lock;
    if (!pending_ && lock.try_lock()) {
        thread_.process.translator.adapt(thread_.trace.last_buffer());
        lock.unlock();
    }
    return true;
}

// The program writes to a page whose code has been translated. If the instruction's own code is
// there, what it writes may be next to be executed: it runs by itself then.
bool Signals::let_write(const siginfo_t* info, ucontext_t* interrupted) {
    Process& process = thread_.process;
    const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
    const std::uint64_t host_pc = pc_of(interrupted);
    const bool translated = process.cache.contains(host_pc);
    // A copy is the driver's, which holds the lock.
    std::unique_lock guard(process.lock, std::defer_lock);
    if (translated) guard.lock();
    const std::uint64_t page = address & ~(CodeWatch::kPage - 1);
    const RecoveryPoint* point = process.cache.point_at(host_pc);
    const bool own = point != nullptr && process.cache.reaches_into(host_pc, page);
    if (!process.watch.let_write(address)) return false;
    process.code_changed(page, page + CodeWatch::kPage);
    if (!own) return true;
    leave_before(*point, host_pc, false, interrupted);
    thread_.run_next_alone();
    return true;
}

// Translated code is left before or, as for what the processor reports, behind the instruction
// whose translation has been reached.
void Signals::leave_before(const RecoveryPoint& point, std::uint64_t host_pc, bool executed,
                           ucontext_t* interrupted) {
    Process& process = thread_.process;
    Context& context = *thread_.context;
    auto& gregs = interrupted->uc_mcontext.gregs;
    if (point.cursor != kNoGpr)
        thread_.trace.set_cursor(static_cast<std::uint64_t>(gregs[kGregs[point.cursor]]));
    for (unsigned reg = 0; reg < 16; ++reg)
        if (point.saved & bit(reg)) gregs[kGregs[reg]] = static_cast<greg_t>(context.gpr[reg]);
    if (point.displaced_by != Segment::kFlat)
        gregs[kGregs[point.displaced]] -=
            static_cast<greg_t>(context.segment_base(point.displaced_by));
    // The push of the return address found no stack.
    if (point.rcx_is_target) gregs[REG_RCX] = static_cast<greg_t>(context.indirect_rcx);
    const std::uint32_t count = point.executed - (executed ? 0U : 1U);
    const Block& block = process.cache.block_at(host_pc, point.block);
    if (block.version != kPlain && (count != block.instr_count || !point.counted))
        process.trace.partial(block.id, count, point.counted);
    if (block.counts_at_exits)
        context.countdown -= block.position() + count;
    else if (process.regions.counts() || process.regions.samples())
        context.countdown += block.instr_count - count;
    thread_.intervals.left_early(context, block, count, point.counted);
    context.pc = block.pc + point.pc_offset;
    context.exit_id = kInterrupted;
    // The way out that translated code itself takes: it puts the registers into the context.
    set_pc(interrupted, context.exit_glue);
    set_trap_flag(interrupted, false);
}

bool Signals::note_fault(int number, const siginfo_t* info, ucontext_t* interrupted) {
    Process& process = thread_.process;
    const std::lock_guard guard(process.lock);
    std::uint64_t host_pc = pc_of(interrupted);
    const std::uint64_t step_buffer = process.cache.step_buffer(thread_.trace.slot());
    if (after_string_ != 0 && host_pc == step_buffer) host_pc = after_string_ - 1;
    after_string_ = 0;
    // A breakpoint is reported behind the instruction.
    const unsigned behind = number == SIGTRAP && !is_at_int1(host_pc) ? 1 : 0;
    const RecoveryPoint* point = process.cache.point_at(host_pc - behind);
    if (point == nullptr) return false;
    // Behind a signal that waits, the instruction will be executed again.
    const bool again = pending_ != 0;
    leave_before(*point, host_pc - behind, !again, interrupted);
    if (!again) {
        thread_.context->pc += behind;
        note(number, info);
        signal_.fault = true;
        const auto& gregs = interrupted->uc_mcontext.gregs;
        signal_.error = static_cast<std::uint64_t>(gregs[REG_ERR]);
        signal_.trap = static_cast<std::uint64_t>(gregs[REG_TRAPNO]);
        // An overflow of the stack.
        if (number == SIGSEGV && info->si_code == SEGV_ACCERR &&
            process.program.is_below_stack(reinterpret_cast<std::uint64_t>(info->si_addr)))
            signal_.info.si_code = SEGV_MAPERR;
        if (number == SIGFPE || number == SIGILL)
            signal_.info.si_addr = reinterpret_cast<void*>(thread_.context->pc);
    }
    set_mask_of(interrupted, kAllSignals);
    return true;
}

void Signals::note(int number, const siginfo_t* info) {
    signal_ = PendingSignal{number, false, *info};
    pending_ = number;
}

// --- Single steps.

void Signals::step_from(ucontext_t* interrupted) {
    stepping_ = true;
    set_trap_flag(interrupted, true);
    const auto* code = reinterpret_cast<const std::uint8_t*>(pc_of(interrupted));
    while (*code == 0x66 || (*code & 0xf0) == 0x40) ++code;
    pushes_flags_ = *code == 0x9c;
    if (*code == 0xf2 || *code == 0xf3) step_over_string(interrupted);
}

void Signals::on_step(ucontext_t* interrupted) {
    // What pushf pushed is the target's flags, with the driver's trap flag.
    if (pushes_flags_)
        *reinterpret_cast<std::uint16_t*>(interrupted->uc_mcontext.gregs[REG_RSP]) &=
            static_cast<std::uint16_t>(~kTrapFlag);
    pushes_flags_ = false;
    if (after_string_ != 0) set_pc(interrupted, after_string_);
    after_string_ = 0;
    const std::uint64_t host_pc = pc_of(interrupted);
    if (thread_.process.cache.contains(host_pc)) {
        if (!leave_at_entry(interrupted)) step_from(interrupted);
        return;
    }
    // popf may just have cleared the flag that the handler had set.
    const bool enters = is_between(host_pc, address_of(assay_enter), assay_enter_end);
    set_trap_flag(interrupted, enters);
    stepping_ = enters;
}

// A repeated instruction is reported after each iteration, of which there can be millions
// (SDM volume 3, 17.3.1.4). It runs aside, with a breakpoint behind.
void Signals::step_over_string(ucontext_t* interrupted) {
    const std::uint64_t host_pc = pc_of(interrupted);
    const auto* code = reinterpret_cast<const std::uint8_t*>(host_pc);
    unsigned length = 0;
    while (code[length] == 0x66 || code[length] == 0x67 || code[length] == 0xf2 ||
           code[length] == 0xf3 || (code[length] & 0xf8) == 0x48 || (code[length] & 0xf0) == 0x40)
        ++length;
    const unsigned opcode = code[length++];
    const bool string = (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);
    if (!string) return;
    const std::uint64_t aside = thread_.process.cache.step_buffer(thread_.trace.slot());
    auto* to = reinterpret_cast<std::uint8_t*>(aside);
    std::memcpy(to, code, length);
    to[length] = 0xcc;
    after_string_ = host_pc + length;
    set_pc(interrupted, aside);
    set_trap_flag(interrupted, false);
}

// Leaves translated code if a basic block begins here.
bool Signals::leave_at_entry(ucontext_t* interrupted) {
    const std::lock_guard guard(thread_.process.lock);
    const Block* block = thread_.process.cache.entered_at(pc_of(interrupted));
    if (block == nullptr) return false;
    thread_.context->pc = block->pc;
    thread_.context->countdown -= block->position();
    thread_.context->exit_id = kInterrupted;
    set_pc(interrupted, thread_.context->exit_glue);
    set_trap_flag(interrupted, false);
    stepping_ = false;
    return true;
}

void Signals::entering() {
    entering_ = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!pending_ && !asked_) return;
    thread_.context->rflags |= kTrapFlag;
    stepping_ = true;
}

void Signals::left() {
    entering_ = false;
    stepping_ = false;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_.context->rflags &= ~kTrapFlag;
}

}  // namespace assay::native
