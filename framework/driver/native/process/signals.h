// Signals of one thread of the program.
//
// The driver's handlers only note a signal and make translated code return soon. The driver
// delivers the signal between two basic blocks, when the context has the whole state of the
// program. From arrival to delivery all signals of the thread are blocked, so one place is enough.
// Only faults are not blocked, because translated code uses them to request the next buffer. If the
// program causes a fault while a signal waits, the signal comes first, and the fault happens again
// after it.
//
// Stepper makes translated code return, by single steps. CodeFaults handles its faults.
#pragma once

#include "framework/driver/native/process/code_faults.h"
#include "framework/driver/native/process/stepper.h"
#include "framework/driver/native/signals/signal_actions.h"
#include "framework/driver/native/signals/signal_frame.h"

#include <ucontext.h>
#include <atomic>
#include <optional>

namespace assay::native {

class Signals {
  public:
    // `cache` identifies translated code. `waited` belongs to the process; see wait_for().
    Signals(const CodeCache& cache, Stepper& stepper, CodeFaults& faults,
            std::atomic<std::uint64_t>& waited)
        : cache_(cache), stepper_(stepper), faults_(faults), waited_(waited) {}

    // The thread starts with this mask, without pending signals and without an alternate stack. The
    // driver's handlers use `handler_stack`. Sets the kernel's mask.
    void initialise(Context& context, std::uint64_t mask, const stack_t& handler_stack);
    std::uint64_t mask() const { return mask_; }

    bool pending() const { return pending_ != 0; }
    int pending_number() const { return pending_; }
    // Called by another thread, which holds the driver's lock. Makes this thread, the kernel's
    // `tid` in process `pid`, leave translated code at the end of a basic block.
    void ask_to_leave(pid_t pid, pid_t tid);
    bool asked_to_leave() const { return asked_; }
    void has_left() { asked_ = false; }
    const volatile int* pending_flag() const { return &pending_; }
    // Delivers the pending signal.
    struct Delivery {
        enum Result : std::uint8_t {
            kNothing,      // it is ignored, or has stopped the process
            kHandler,      // its handler will run: the frame is pushed
            kDeath,        // the process has to end by it
            kOtherSignal,  // the stack has no room for the frame: SIGSEGV is pending instead
        };
        Result result = kNothing;
        int number = 0;
    };
    Delivery deliver(SignalActions& actions);
    // To be called before delivery in a traced process. Sends the signal once more, so that the
    // kernel stops the thread for its tracer; `lock` is released meanwhile. False if the signal is
    // no longer pending. Sets `result` to the result of the system call that the stop interrupted.
    bool stop_for_tracer(DriverLock& lock, long& result);
    // Raises a fault that translation has found, for example code that is not executable.
    void raise_fault(int number, int code, std::uint64_t address);

    // To be called before translated code is entered: from now on a signal makes it return soon.
    void entering();
    void left() { stepper_.left(*context_); }

    // rt_sigprocmask, sigaltstack, rt_sigreturn.
    long set_mask(int how, const std::uint64_t* set, std::uint64_t* old);
    long set_stack(const stack_t* stack, stack_t* old);
    void return_from_handler();
    // Start and end of a system call that waits with a temporary mask, for example rt_sigsuspend. A
    // signal that interrupts the call is handled with that mask. `result`: the call's result.
    void begin_wait(std::uint64_t mask) { wait_mask_ = mask & ~kUnblockable; }
    void end_wait(long result);
    // Before and after a system call of the kernel: gives the held signals to the kernel meanwhile,
    // so that the call can wait for them.
    void lend_held();
    void take_back_held();
    bool holds() const { return held_.any(); }
    // A sigwaitinfo(2) for these signals starts. Other threads then do not keep them.
    void wait_for(std::uint64_t set);
    // Start and end of the program's system call `number`. A filter of seccomp(2) may refuse it by
    // SIGSYS. It may also refuse the driver's own calls, which the program must not see.
    void begin_call(long number) { calling_ = number; }
    void end_call() { calling_ = kNoCall; }
    bool call_refused() const { return pending_ && is_refusal(pending_, signal_.info); }
    // Sets the kernel's mask to the program's own mask, for a new program (execve).
    void give_mask_to_kernel() const;
    void restore_mask_in_kernel() { apply_mask(); }
    // Gives the held signals to the kernel, which blocks all signals, for a new program.
    void give_held_to_kernel() { held_.give_to_kernel(0); }
    // A new process has no pending signals: fork(2).
    void forget_held() { held_.clear(); }
    static void block_all();
    // Blocks all signals except the synchronous ones.
    static void block_sent();

    // State that a child of vfork(2) may change although it shares it with its parent.
    struct State {
        std::uint64_t mask;
        AlternateStack stack;
        HeldSignals held;
    };
    State state() const { return {mask_, stack_, held_}; }
    // Restores the state, and drops the pending signal, which was the child's.
    void restore(const State& state);

    // --- Called in the handler of all signals (Thread::handle_signal).

    // Returns the registers that a signal has interrupted. If it interrupted assay_resume(),
    // returns the registers that assay_resume() restores.
    ucontext_t* interrupted_by(ucontext_t* found) const;
    // A signal arrives. False if it is a fault of the driver itself.
    bool arrive(int number, const siginfo_t& info, ucontext_t* interrupted);

  private:
    void on_sent(int number, const siginfo_t& info, ucontext_t* interrupted);
    bool is_fault(int number, const siginfo_t& info, std::uint64_t host_pc) const;
    void come_back(ucontext_t* interrupted);
    bool on_fault(int number, const siginfo_t& info, ucontext_t* interrupted);
    void requeue(int number, siginfo_t info, ucontext_t* interrupted) const;
    bool note_fault(int number, siginfo_t info, ucontext_t* interrupted);
    void note(int number, const siginfo_t& info);
    static bool is_refusal(int number, const siginfo_t& info);
    static bool ends_by_faults_only();
    bool blocks(int number) const;
    void apply_mask();
    void stop_by(int number);
    Delivery report_lack_of_stack(int number, const std::optional<std::uint64_t>& wait_mask);

    const CodeCache& cache_;
    Stepper& stepper_;
    CodeFaults& faults_;
    std::atomic<std::uint64_t>& waited_;
    Context* context_ = nullptr;
    volatile int pending_ = 0;
    volatile bool asked_ = false;  // by another thread
    volatile bool stopped_by_tracer_ = false;
    PendingSignal signal_;
    HeldSignals held_;
    bool lent_ = false;
    std::uint64_t waits_for_ = 0;  // like waited_, but of this thread
    std::uint64_t mask_ = 0;       // the program's
    std::optional<std::uint64_t> wait_mask_;
    AlternateStack stack_;
    static constexpr long kNoCall = -1;
    volatile long calling_ = kNoCall;
    ucontext_t* resumed_ = nullptr;  // see assay_resume
};

}  // namespace assay::native
