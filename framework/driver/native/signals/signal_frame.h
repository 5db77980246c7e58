// The frame that the kernel pushes for a signal handler, and pops when the handler returns
// (arch/x86/kernel/signal_64.c).
#pragma once

#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/signals/signal_actions.h"

#include <csignal>

namespace assay::native {

struct PendingSignal {
    int number = 0;
    bool fault = false;  // caused by an instruction of the target
    siginfo_t info{};
    std::uint64_t error = 0, trap = 0;  // err and trapno of sigcontext, for a fault
};

// The alternate signal stack of one thread: sigaltstack(2).
class AlternateStack {
  public:
    // Returns 0 or a negative error number. Fails while the alternate stack is in use.
    long set(const stack_t& wanted, std::uint64_t sp);
    // The kernel's sas_ss_reset().
    void disable() { stack_ = stack_t{nullptr, SS_DISABLE, 0}; }
    // The stack with the flags that sigaltstack(2) reports, then the stack as the program set it.
    stack_t as_seen_at(std::uint64_t sp) const;
    const stack_t& as_set() const { return stack_; }
    bool is_disabled() const { return stack_.ss_size == 0; }
    // SS_AUTODISARM: the stack is disabled while a handler runs.
    bool disarms_itself() const { return stack_.ss_flags & kFlagBits; }
    bool is_on(std::uint64_t sp) const;
    bool contains(std::uint64_t sp) const;
    std::uint64_t end() const {
        return reinterpret_cast<std::uint64_t>(stack_.ss_sp) + stack_.ss_size;
    }

  private:
    static constexpr int kFlagBits = static_cast<int>(1U << 31);  // SS_AUTODISARM
    stack_t stack_{nullptr, 0, 0};
};

// Makes the target enter the handler. The handler uses the alternate stack `stack` if its flags say
// so and the target is not on it yet. False if the frame cannot be written or does not fit.
bool push_signal_frame(Context& context, const KernelAction& action, const PendingSignal& signal,
                       std::uint64_t mask, AlternateStack& stack);
// False if the frame at the stack pointer names another code segment than the 64-bit one. True if
// the frame cannot be read.
bool goes_on_in_64_bits(const Context& context);
// Restores the target's registers from the frame. False if the frame cannot be read.
bool pop_signal_frame(Context& context, std::uint64_t& mask, AlternateStack& stack);

}  // namespace assay::native
