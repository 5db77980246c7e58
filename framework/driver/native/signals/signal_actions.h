// What the target wants done with each signal, as rt_sigaction(2) says: for all threads of the
// process. Its methods are for whoever holds the driver's lock.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>

namespace assay::native {

// As rt_sigaction(2) passes it.
struct KernelAction {
    std::uint64_t handler = 0;
    std::uint64_t flags = 0;
    std::uint64_t restorer = 0;
    std::uint64_t mask = 0;
};

// Sets of signals as the kernel has them.
constexpr std::uint64_t mask_of(int number) {
    return 1ULL << (number - 1);
}
inline constexpr std::uint64_t kAllSignals = ~0ULL;
inline constexpr std::uint64_t kUnblockable = mask_of(SIGKILL) | mask_of(SIGSTOP);
// Those that processors cause. The driver never blocks them.
inline constexpr std::uint64_t kSynchronousSignals =
    mask_of(SIGSEGV) | mask_of(SIGBUS) | mask_of(SIGFPE) | mask_of(SIGILL) | mask_of(SIGTRAP);

// signal(7), "Ign" and "Cont", and "Stop" without SIGSTOP.
inline constexpr std::uint64_t kIgnoredByDefault =
    mask_of(SIGCHLD) | mask_of(SIGCONT) | mask_of(SIGURG) | mask_of(SIGWINCH);
inline constexpr std::uint64_t kStopsByDefault =
    mask_of(SIGTSTP) | mask_of(SIGTTIN) | mask_of(SIGTTOU);

class SignalActions {
  public:
    // As sigaction(2) has it with SA_SIGINFO.
    using Handler = void (*)(int number, siginfo_t* info, void* ucontext);
    // Takes over what the process has been started with, and makes synchronous signals arrive at
    // the driver's handler.
    void initialise(Handler handler);
    // Either may be nullptr. Returns 0 or a negative error number.
    long set(int number, const KernelAction* action, KernelAction* old);
    const KernelAction& of(int number) const { return actions_[number]; }
    // SA_RESETHAND. What else the action says stays.
    void reset_handler(int number);
    // CLONE_CLEAR_SIGHAND: what has a handler goes back to the default.
    void clear_handlers();
    // For a new program, which inherits that a signal is ignored: those that arrive nevertheless
    // are ignored in the kernel. Until they arrive again, none may.
    void let_kernel_ignore() const;
    void make_all_due_arrive() const;
    // Signals arrive at the driver although the program leaves them to the kernel: the synchronous
    // ones always, all others if the process is traced.
    void let_all_arrive(bool all);
    // What libc has set in the kernel makes way for what the target wants.
    void put_back_in_kernel(int number);
    // In the kernel, too: a signal that ends the process.
    static void set_default_in_kernel(int number);

  private:
    bool arrives_anyway(int number) const;
    KernelAction in_kernel(int number) const;
    KernelAction own_action(std::uint64_t flags) const;

    Handler handler_ = nullptr;
    KernelAction actions_[65];
    bool all_arrive_ = false;
};

// Signals of the kinds that processors cause, which somebody has sent while the thread blocks them.
// The kernel's mask lets these kinds through always, so the driver keeps what the kernel would: one
// of each kind, the first (signal(7)). The caller sees to it that none arrives meanwhile.

class HeldSignals {
  public:
    bool any() const { return numbers_ != 0; }
    void hold(int number, const siginfo_t& info);
    // The first of them that the mask does not block, or 0.
    int due(std::uint64_t mask) const;
    siginfo_t take(int number);
    // For the time of a system call that can see what is pending. They come back as soon as the
    // kernel's mask lets them through again. Those of `for_others` that kill(2) has sent go to the
    // process, so that any thread can have them, the others to this thread.
    void give_to_kernel(std::uint64_t for_others);
    void clear() { numbers_ = 0; }

  private:
    std::uint64_t numbers_ = 0;
    std::array<siginfo_t, SIGSEGV + 1> infos_;
};

static_assert(kSynchronousSignals >> SIGSEGV == 0, "SIGSEGV has the greatest number");

}  // namespace assay::native
