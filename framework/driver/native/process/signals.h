// Signals of one thread of the target.
//
// The driver's handlers only note a signal and make translated code come back soon; it is
// delivered between two basic blocks, when all target state is in the context. From its arrival
// until then every signal of the thread is blocked, so one place to note it is enough; but for
// faults, by which translated code asks for the next buffer. A fault of the target while another
// signal waits makes way for that one, and happens again behind it.
//
// Translated code comes back by single steps, see Stepper; what its faults mean, CodeFaults knows.
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
    // `cache`, to know translated code by its address. `waited`: the process's, see wait_for().
    Signals(const CodeCache& cache, Stepper& stepper, CodeFaults& faults,
            std::atomic<std::uint64_t>& waited)
        : cache_(cache), stepper_(stepper), faults_(faults), waited_(waited) {}

    // The thread starts with this mask, no signals pending, and no alternate stack of its own;
    // `handler_stack` is that of the driver's handlers. The kernel's mask becomes the thread's.
    void initialise(Context& context, std::uint64_t mask, const stack_t& handler_stack);
    std::uint64_t mask() const { return mask_; }

    bool pending() const { return pending_ != 0; }
    // Its number.
    int pending_number() const { return pending_; }
    // From another thread, which holds the driver's lock: this one, the kernel's `tid` in the
    // process `pid`, leaves translated code at the end of a basic block.
    void ask_to_leave(pid_t pid, pid_t tid);
    bool asked_to_leave() const { return asked_; }
    void has_left() { asked_ = false; }
    const volatile int* pending_flag() const { return &pending_; }
    // Delivers the pending signal.
    struct Delivery {
        enum Result : std::uint8_t {
            kNothing,      // it is ignored, or has stopped the process
            kHandler,      // its handler has its frame
            kDeath,        // the process has to end by it
            kOtherSignal,  // the handler has no stack: SIGSEGV is pending in its place, and next
        };
        Result result = kNothing;
        int number = 0;
    };
    Delivery deliver(SignalActions& actions);
    // Before, in a traced process: the kernel stops the thread for its tracer, since the signal is
    // sent once more; meanwhile `lock` is not held. False if it is not pending any more. `result`
    // is the system call's behind which the stop was.
    bool stop_for_tracer(DriverLock& lock, long& result);
    // A fault that translation itself found, e.g. a jump to memory that is not executable.
    void raise_fault(int number, int code, std::uint64_t address);

    // Translated code is about to be entered: a signal from now on has it come back soon.
    void entering();
    void left() { stepper_.left(*context_); }

    // rt_sigprocmask, sigaltstack, rt_sigreturn.
    long set_mask(int how, const std::uint64_t* set, std::uint64_t* old);
    long set_stack(const stack_t* stack, stack_t* old);
    void return_from_handler();
    // A system call that waits with a mask in the place of the thread's begins, e.g.
    // rt_sigsuspend, and ends with that result. What interrupts it is handled with that mask.
    void begin_wait(std::uint64_t mask) { wait_mask_ = mask & ~kUnblockable; }
    void end_wait(long result);
    // Around a system call that the kernel makes: it keeps the signals that the driver holds
    // meanwhile, so that they can be waited for.
    void lend_held();
    void take_back_held();
    bool holds() const { return held_.any(); }
    // sigwaitinfo(2) with these begins. What one thread waits for, others do not keep.
    void wait_for(std::uint64_t set);
    // The program's system call of that number begins, and ends. A filter of seccomp(2) may refuse
    // it by SIGSYS, as it may the driver's own calls, of which the program shall not learn.
    void begin_call(long number) { calling_ = number; }
    void end_call() { calling_ = kNoCall; }
    bool call_refused() const { return pending_ && is_refusal(pending_, signal_.info); }
    // The target's own mask goes to the kernel as it is, for a new program (execve).
    void give_mask_to_kernel() const;
    void restore_mask_in_kernel() { apply_mask(); }
    // What is held goes to the kernel, whose mask blocks everything, for a new program.
    void give_held_to_kernel() { held_.give_to_kernel(0); }
    // A new process has no pending signals: fork(2).
    void forget_held() { held_.clear(); }
    static void block_all();
    // All but the synchronous ones.
    static void block_sent();

    // What a child of vfork(2) may change of what it shares with its parent.
    struct State {
        std::uint64_t mask;
        AlternateStack stack;
        HeldSignals held;
    };
    State state() const { return {mask_, stack_, held_}; }
    // What is noted is the child's, and gone with it.
    void restore(const State& state);

    // --- In the handler of all signals (Thread::handle_signal).

    // What a signal has interrupted: if assay_resume(), as if the signal had come before the one
    // whose handler is about to end.
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
    volatile bool asked_ = false;  // to leave
    volatile bool stopped_by_tracer_ = false;
    PendingSignal signal_;
    HeldSignals held_;
    bool lent_ = false;
    std::uint64_t waits_for_ = 0;  // what this thread has ever waited for, of kSynchronousSignals
    std::uint64_t mask_ = 0;       // the target's
    std::optional<std::uint64_t> wait_mask_;
    AlternateStack stack_;
    static constexpr long kNoCall = -1;
    volatile long calling_ = kNoCall;
    ucontext_t* resumed_ = nullptr;  // see assay_resume
};

}  // namespace assay::native
