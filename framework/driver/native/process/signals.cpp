// Signals: arrival in the kernel's handler, the way out of translated code, and delivery.
#include "framework/driver/native/process/signals.h"

#include "framework/driver/native/code_cache/stress.h"
#include "framework/driver/native/process/code_faults.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace assay::native {
namespace {

constexpr greg_t kWriteFault = 2;  // bit of a page fault's error code

bool is_synchronous(int number) {
    return kSynchronousSignals & mask_of(number);
}

}  // namespace

ucontext_t* Signals::interrupted_by(ucontext_t* found) const {
    const bool resumes = is_between(pc_of(found), address_of(assay_resume), assay_resume_end);
    return resumes ? resumed_ : found;
}

bool Signals::arrive(int number, const siginfo_t& info, ucontext_t* interrupted) {
    resumed_ = interrupted;
    if (stopped_by_tracer_) {
        set_mask_of(interrupted, kAllSignals);
        note(number, info);
    } else if (is_fault(number, info, pc_of(interrupted))) {
        return on_fault(number, info, interrupted);
    } else {
        on_sent(number, info, interrupted);
    }
    return true;
}

void Signals::on_sent(int number, const siginfo_t& info, ucontext_t* interrupted) {
    if (Stress::is_interruption(number, info)) return stepper_.interrupt(*context_, interrupted);
    if (number == SIGTRAP && info.si_code == SI_QUEUE && info.si_ptr == this) {
        asked_ = true;
        if (!stepper_.is_stepping()) come_back(interrupted);
        return;
    }
    if (is_refusal(number, info)) {
        // The driver's code gets this result. brk(2) has no error numbers, so it gets 0.
        interrupted->uc_mcontext.gregs[REG_RAX] = info.si_syscall == SYS_brk ? 0 : -ENOSYS;
        if (info.si_syscall != calling_) return;
    }
    if (is_synchronous(number) && blocks(number)) {
        held_.hold(number, info);
        // A system call that is about to start has not given this signal to the kernel.
        if (is_between(pc_of(interrupted), assay_syscall_begin, assay_syscall_end))
            set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_syscall_interrupted));
        return;
    }
    if (pending_) return requeue(number, info, interrupted);
    set_mask_of(interrupted, ~kSynchronousSignals);
    note(number, info);
    come_back(interrupted);
}

// A process may send itself a signal that looks like a fault: rt_tgsigqueueinfo(2). It arrives
// after a system call instruction of the driver, which causes no faults.
bool Signals::is_fault(int number, const siginfo_t& info, std::uint64_t host_pc) const {
    if (!is_synchronous(number) || info.si_code <= 0) return false;
    const auto* before = reinterpret_cast<const std::uint8_t*>(host_pc) - 2;
    return cache_.contains(host_pc) || before[0] != 0x0f || before[1] != 0x05;
}

// Makes translated code return at the end of a basic block, and stops a system call from starting.
void Signals::come_back(ucontext_t* interrupted) {
    if (stepper_.come_back(*context_, interrupted)) return;
    if (is_between(pc_of(interrupted), assay_syscall_begin, assay_syscall_end))
        set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_syscall_interrupted));
}

// Sends a signal to this thread again, blocked, so that the kernel keeps it until the driver can
// note it. The mask stays so, because otherwise two such signals would alternate forever.
void Signals::requeue(int number, siginfo_t info, ucontext_t* interrupted) const {
    std::uint64_t before = 0;
    std::memcpy(&before, &interrupted->uc_sigmask, sizeof before);
    set_mask_of(interrupted, before | ~kSynchronousSignals | mask_of(number));
    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), number, &info);
}

bool Signals::on_fault(int number, const siginfo_t& info, ucontext_t* interrupted) {
    const std::uint64_t host_pc = pc_of(interrupted);
    if (number == SIGTRAP && stepper_.is_step(info)) {
        stepper_.on_step(*context_, interrupted);
        return true;
    }
    const bool copying =
        is_between(host_pc, reinterpret_cast<const void*>(&assay_copy), assay_copy_end);
    const bool translated = cache_.contains(host_pc);
    if (translated && faults_.continue_in_next_buffer(info, pending_ == 0, interrupted))
        return true;
    // Only writes are checked, because copies that only read also run without the lock.
    const bool writes = interrupted->uc_mcontext.gregs[REG_ERR] & kWriteFault;
    if (number == SIGSEGV && info.si_code == SEGV_ACCERR && writes && (translated || copying) &&
        faults_.let_write(*context_, info, interrupted))
        return true;
    if (copying) {
        set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_copy_end));
        return true;
    }
    if (is_between(host_pc, reinterpret_cast<const void*>(&assay_touch), assay_touch_end)) {
        set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_touch_end));
        return true;
    }
    return translated && note_fault(number, info, interrupted);
}

bool Signals::note_fault(int number, siginfo_t info, ucontext_t* interrupted) {
    const std::uint64_t host_pc = stepper_.end_at_fault(pc_of(interrupted));
    // If a signal is waiting, the instruction runs again after it.
    const bool again = pending_ != 0;
    if (!faults_.leave_at_fault(*context_, number, host_pc, again, info, interrupted)) return false;
    if (!again) {
        note(number, info);
        signal_.fault = true;
        const auto& gregs = interrupted->uc_mcontext.gregs;
        signal_.error = static_cast<std::uint64_t>(gregs[REG_ERR]);
        signal_.trap = static_cast<std::uint64_t>(gregs[REG_TRAPNO]);
    }
    set_mask_of(interrupted, kAllSignals);
    return true;
}

void Signals::note(int number, const siginfo_t& info) {
    signal_ = PendingSignal{number, false, info};
    pending_ = number;
}

void Signals::entering() {
    stepper_.entering();
    if (pending_ || asked_) stepper_.step_from_entry(*context_);
}

// Delivery, outside of the kernel's handler, according to the program's mask, actions and stack.

void Signals::initialise(Context& context, std::uint64_t mask, const stack_t& handler_stack) {
    context_ = &context;
    sigaltstack(&handler_stack, nullptr);
    mask_ = mask;
    pending_ = 0;
    held_.clear();
    waits_for_ = 0;
    stack_ = {};
    apply_mask();
}

// SIGTRAP with this value marks the request, because the program's own SIGTRAP has another value.
// Translated code never blocks SIGTRAP.
void Signals::ask_to_leave(pid_t pid, pid_t tid) {
    siginfo_t info{};
    info.si_code = SI_QUEUE;
    info.si_ptr = this;
    syscall(SYS_rt_tgsigqueueinfo, pid, tid, SIGTRAP, &info);
}

void Signals::raise_fault(int number, int code, std::uint64_t address) {
    siginfo_t info{};
    info.si_signo = number;
    info.si_code = code;
    info.si_addr = reinterpret_cast<void*>(address);
    block_all();
    if (pending_) return;  // deliver that signal first: the fault happens again
    note(number, info);
    signal_.fault = true;
    signal_.error = number == SIGILL ? 0 : 0x14;  // an instruction fetch from user mode
    signal_.trap = number == SIGILL ? 6 : 14;
}

void Signals::block_all() {
    const std::uint64_t all = kAllSignals;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, 8);
}

void Signals::block_sent() {
    const std::uint64_t sent = ~kSynchronousSignals;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &sent, nullptr, 8);
}

// Notes a held signal that is no longer blocked, as if it arrived now.
void Signals::apply_mask() {
    std::uint64_t mask = mask_ & ~kSynchronousSignals;
    if (const int due = held_.due(mask_)) {
        block_all();
        if (!pending_) {
            const siginfo_t info = held_.take(due);
            note(due, info);
        }
        mask = ~kSynchronousSignals;
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, 8);
}

bool Signals::blocks(int number) const {
    return wait_mask_.value_or(mask_) & mask_of(number);
}

void Signals::give_mask_to_kernel() const {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask_, nullptr, 8);
}

void Signals::restore(const State& state) {
    pending_ = 0;
    wait_mask_.reset();
    mask_ = state.mask;
    stack_ = state.stack;
    held_ = state.held;
    apply_mask();
}

// True for the first process of a PID namespace: only a fault can end it, not a signal that is sent
// by itself or by others (SIGNAL_UNKILLABLE of the kernel).
bool Signals::ends_by_faults_only() {
    return getpid() == 1;
}

Signals::Delivery Signals::deliver(SignalActions& actions) {
    // Synchronous signals stay enabled because writing the frame may fault. All other signals wait.
    block_sent();
    const int number = pending_;
    const std::optional<std::uint64_t> wait_mask = std::exchange(wait_mask_, std::nullopt);
    const KernelAction action = actions.of(number);
    // The program may have removed the handler since the signal arrived.
    const bool by_itself = signal_.fault || is_refusal(number, signal_.info);
    const bool ignored = action.handler == reinterpret_cast<std::uint64_t>(SIG_IGN) ||
                         (action.handler == 0 && (kIgnoredByDefault & mask_of(number) ||
                                                  (ends_by_faults_only() && !by_itself)));
    // A fault ends the process if its signal is blocked or ignored: force_sig_fault().
    const bool forced = signal_.fault && (mask_ & mask_of(number) || ignored);
    if (action.handler == 0 && kStopsByDefault & mask_of(number)) {
        stop_by(number);
        return {};
    }
    if (forced || (action.handler == 0 && !ignored)) return {Delivery::kDeath, number};
    if (ignored) {
        pending_ = 0;
        apply_mask();
        return {};
    }
    if (is_refusal(number, signal_.info))
        signal_.info.si_call_addr = reinterpret_cast<void*>(context_->pc);
    if (action.flags & SA_RESETHAND) actions.reset_handler(number);
    if (!push_signal_frame(*context_, action, signal_, mask_, stack_))
        return report_lack_of_stack(number, wait_mask);
    pending_ = 0;
    mask_ = wait_mask.value_or(mask_) | action.mask;
    if (!(action.flags & SA_NODEFER)) mask_ |= mask_of(number);
    apply_mask();
    return {Delivery::kHandler, number};
}

// The tracer gets each signal of a traced process first, and decides which signal the process gets
// instead. The kernel does this when the signal is sent once more. False if the tracer removed it.
bool Signals::stop_for_tracer(DriverLock& lock, long& result) {
    const PendingSignal noted = signal_;
    siginfo_t info = noted.info;
    block_all();
    pending_ = 0;
    stopped_by_tracer_ = true;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), noted.number, &info);
    lock.unlock();
    const std::uint64_t others = ~mask_of(noted.number);
    result = syscall(SYS_rt_sigprocmask, SIG_SETMASK, &others, nullptr, 8);
    block_sent();
    lock.lock();
    stopped_by_tracer_ = false;
    if (pending_ == noted.number) signal_ = noted;  // keeps the details of a fault
    if (pending_) return true;
    wait_mask_.reset();
    apply_mask();
    return false;
}

// The kernel stops the process, because the signal has no handler there.
void Signals::stop_by(int number) {
    pending_ = 0;
    syscall(SYS_tgkill, getpid(), gettid(), number);
    apply_mask();
}

// kernel/signal.c, signal_setup_done(): SIGSEGV may have a handler with another stack.
Signals::Delivery Signals::report_lack_of_stack(int number,
                                                const std::optional<std::uint64_t>& wait_mask) {
    if (number == SIGSEGV) return {Delivery::kDeath, SIGSEGV};
    wait_mask_ = wait_mask;
    siginfo_t info{};
    info.si_signo = SIGSEGV;
    info.si_code = SI_KERNEL;
    note(SIGSEGV, info);
    signal_.fault = true;
    return {Delivery::kOtherSignal, SIGSEGV};
}

bool Signals::is_refusal(int number, const siginfo_t& info) {
    constexpr int kSeccomp = 1;  // SYS_SECCOMP of the kernel's siginfo.h
    return number == SIGSYS && info.si_code == kSeccomp;
}

void Signals::return_from_handler() {
    if (!pop_signal_frame(*context_, mask_, stack_)) return raise_fault(SIGSEGV, SI_KERNEL, 0);
    apply_mask();
}

long Signals::set_mask(int how, const std::uint64_t* set, std::uint64_t* old) {
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
        mask_ &= ~kUnblockable;
        if (!pending_) apply_mask();
    }
    if (old) *old = before;
    return 0;
}

long Signals::set_stack(const stack_t* stack, stack_t* old) {
    const std::uint64_t sp = context_->gpr[RSP];
    if (old) *old = stack_.as_seen_at(sp);
    return stack ? stack_.set(*stack, sp) : 0;
}

// kernel/signal.c, restore_saved_sigmask_unless(): only the handler that has interrupted the call
// starts with the call's mask.
void Signals::end_wait(long result) {
    if (result != -EINTR || !pending_) wait_mask_.reset();
}

void Signals::wait_for(std::uint64_t set) {
    waits_for_ |= set & kSynchronousSignals;
    waited_ |= set & kSynchronousSignals;
}

void Signals::lend_held() {
    if (!held_.any() || pending_) return;
    lent_ = true;
    give_mask_to_kernel();
    held_.give_to_kernel(waited_ & ~waits_for_);
}

void Signals::take_back_held() {
    if (!std::exchange(lent_, false)) return;
    if (!pending_) apply_mask();
}

}  // namespace assay::native
