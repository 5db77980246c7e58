// Signals of the target.
//
// The driver's handlers only note a signal and make translated code come back soon; it is
// delivered between two basic blocks, when all target state is in the context. From its arrival
// until then every signal is blocked, so one place to note it is enough; but for faults, by which
// translated code asks for the next buffer. A fault of the target while another signal waits makes
// way for that one, and happens again behind it.
#pragma once

#include "framework/driver/native/context.h"

#include <csignal>
#include <cstdint>

namespace assay::native {

class Process;
struct Unit;

// As rt_sigaction(2) passes it.
struct KernelAction {
    std::uint64_t handler = 0;
    std::uint64_t flags = 0;
    std::uint64_t restorer = 0;
    std::uint64_t mask = 0;
};

class Signals {
  public:
    explicit Signals(Process& process) : process_(process) {}

    void initialise();
    bool pending() const { return pending_ != 0; }
    const volatile int* pending_flag() const { return &pending_; }
    // Delivers the pending signal: sets up its handler's frame, or ends the process.
    void deliver();
    // A fault that translation itself found, e.g. a jump to memory that is not executable.
    void raise_fault(int number, int code, std::uint64_t address);

    // Announces which unit is about to be entered: a signal from now on diverts it.
    void entering(const Unit* unit) { entering_ = unit; }
    void divert_if_pending(const Unit& unit);
    // Back in the driver: undoes a diversion.
    void left();

    // rt_sigaction, rt_sigprocmask, sigaltstack, rt_sigreturn, rt_sigsuspend.
    long set_action(int number, const KernelAction* action, KernelAction* old);
    long set_mask(int how, const std::uint64_t* set, std::uint64_t* old, std::uint64_t size);
    long set_stack(const stack_t* stack, stack_t* old);
    bool return_from_handler();
    long suspend(const std::uint64_t* mask, std::uint64_t size);
    // True if a system call that the pending signal interrupted is to be started again.
    bool restarts(long number) const;
    // The target's own mask goes to the kernel as it is, for a new program (execve).
    void give_mask_to_kernel() const;
    void restore_mask_in_kernel() const { apply_mask(); }

  private:
    static void handle(int number, siginfo_t* info, void* ucontext);
    void on_signal(int number, siginfo_t* info, ucontext_t* interrupted);
    bool continue_in_next_buffer(const siginfo_t* info, ucontext_t* interrupted);
    bool note_fault(int number, const siginfo_t* info, ucontext_t* interrupted);
    void note(int number, const siginfo_t* info);
    void block_all() const;
    void apply_mask() const;
    void push_frame(const KernelAction& action, int number);
    [[noreturn]] void die_of(int number);

    Process& process_;
    volatile int pending_ = 0;
    bool fault_ = false;
    siginfo_t info_{};
    std::uint64_t mask_ = 0;  // the target's
    KernelAction actions_[65];
    stack_t stack_{};
    const Unit* volatile entering_ = nullptr;
    const Unit* volatile diverted_ = nullptr;
    std::uint64_t fault_error_ = 0, fault_trap_ = 0;
};

}  // namespace assay::native
