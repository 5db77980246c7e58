// The actions that the program has set for its signals (rt_sigaction(2)). All threads of the
// process share them. Callers hold the driver's lock.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>

namespace assay::native {

// The kernel's struct sigaction.
struct KernelAction {
    std::uint64_t handler = 0;
    std::uint64_t flags = 0;
    std::uint64_t restorer = 0;
    std::uint64_t mask = 0;
};

// Sets of signals: bit 0 is signal 1, as in the kernel.
constexpr std::uint64_t mask_of(int number) {
    return 1ULL << (number - 1);
}
inline constexpr std::uint64_t kAllSignals = ~0ULL;
inline constexpr std::uint64_t kUnblockable = mask_of(SIGKILL) | mask_of(SIGSTOP);
// The signals that faulting instructions cause. The driver never blocks them.
inline constexpr std::uint64_t kSynchronousSignals =
    mask_of(SIGSEGV) | mask_of(SIGBUS) | mask_of(SIGFPE) | mask_of(SIGILL) | mask_of(SIGTRAP);

// Default actions "Ign" and "Cont" of signal(7), then "Stop" without SIGSTOP.
inline constexpr std::uint64_t kIgnoredByDefault =
    mask_of(SIGCHLD) | mask_of(SIGCONT) | mask_of(SIGURG) | mask_of(SIGWINCH);
inline constexpr std::uint64_t kStopsByDefault =
    mask_of(SIGTSTP) | mask_of(SIGTTIN) | mask_of(SIGTTOU);

class SignalActions {
  public:
    using Handler = void (*)(int number, siginfo_t* info, void* ucontext);
    // Takes over the actions that the process was started with. From now on synchronous signals
    // arrive at the driver's handler.
    void initialise(Handler handler);
    // `action` and `old` may be nullptr. Returns 0 or a negative error number.
    long set(int number, const KernelAction* action, KernelAction* old);
    const KernelAction& of(int number) const { return actions_[number]; }
    // SA_RESETHAND: sets the default action and keeps its flags and mask.
    void reset_handler(int number);
    // CLONE_CLEAR_SIGHAND: each signal with a handler gets the default action.
    void clear_handlers();
    // Before execve(2), because the new program inherits which signals are ignored. Makes the
    // kernel ignore the signals that the program ignores, also if they would arrive at the driver.
    // No signal may arrive until make_all_due_arrive() is called.
    void let_kernel_ignore() const;
    void make_all_due_arrive() const;
    // Makes all signals arrive at the driver, because the process is traced, or only the necessary
    // ones: synchronous signals and those with a handler.
    void let_all_arrive(bool all);
    // Sets the program's action in the kernel again, after libc has replaced it there.
    void put_back_in_kernel(int number);
    // Sets the default action in the kernel only, for a signal that ends the process.
    static void set_default_in_kernel(int number);

  private:
    bool arrives_anyway(int number) const;
    KernelAction in_kernel(int number) const;
    KernelAction own_action(std::uint64_t flags) const;

    Handler handler_ = nullptr;
    KernelAction actions_[65];
    bool all_arrive_ = false;
};

// Synchronous signals that were sent by a process while the receiving thread blocks them. The
// kernel's mask never blocks these signals, so the driver keeps them instead. It keeps the first
// one of each number, as the kernel does (signal(7)). No signal may arrive during a call.

class HeldSignals {
  public:
    bool any() const { return numbers_ != 0; }
    void hold(int number, const siginfo_t& info);
    // The lowest held number that the mask does not block, or 0.
    int due(std::uint64_t mask) const;
    siginfo_t take(int number);
    // Sends the held signals again, for a system call that can see pending signals. They arrive and
    // are held again as soon as the kernel's mask permits. Signals of `for_others` that kill(2)
    // sent go to the process, so that each thread can take them. The others go to this thread.
    void give_to_kernel(std::uint64_t for_others);
    void clear() { numbers_ = 0; }

  private:
    std::uint64_t numbers_ = 0;
    std::array<siginfo_t, SIGSEGV + 1> infos_;
};

static_assert(kSynchronousSignals >> SIGSEGV == 0, "SIGSEGV has the greatest number");

}  // namespace assay::native
