// What happens outside of the kernel's handler: a noted signal is given to the program, which also
// says which it wants, and on which stack.
#include "framework/driver/native/process/signals.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <utility>

namespace assay::native {

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

// The program's own use of SIGTRAP has another value. It is never blocked while translated code
// runs.
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
    if (pending_) return;  // the other one first: the fault happens again
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

// A signal that is no longer blocked is noted, as if it arrived now.
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

// Others cannot end the first process of a PID namespace, nor can it end itself by sending one:
// SIGNAL_UNKILLABLE of the kernel.
bool Signals::ends_by_faults_only() {
    return getpid() == 1;
}

Signals::Delivery Signals::deliver(SignalActions& actions) {
    // Faults of the stack that the frame goes to must arrive. What is sent meanwhile finds the
    // note.
    block_sent();
    const int number = pending_;
    const std::optional<std::uint64_t> wait_mask = std::exchange(wait_mask_, std::nullopt);
    const KernelAction action = actions.of(number);
    // The handler may have been removed since the signal arrived.
    const bool by_itself = signal_.fault || is_refusal(number, signal_.info);
    const bool ignored = action.handler == reinterpret_cast<std::uint64_t>(SIG_IGN) ||
                         (action.handler == 0 && (kIgnoredByDefault & mask_of(number) ||
                                                  (ends_by_faults_only() && !by_itself)));
    // A fault while its signal is blocked or ignored ends the process: force_sig_fault().
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

// Whatever a traced process gets, its tracer learns of first, and says what it gets instead:
// nothing, if false. The kernel sees to that when the signal is sent once more.
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
    if (pending_ == noted.number) signal_ = noted;  // with what is known of a fault
    if (pending_) return true;
    wait_mask_.reset();
    apply_mask();
    return false;
}

// The kernel does it: there the signal has no handler any more either.
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

// kernel/signal.c, restore_saved_sigmask_unless(): only the handler of what has interrupted the
// call begins with its mask.
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
