// The frame that the kernel puts on the stack for a signal handler, and takes back when it returns
// (arch/x86/kernel/signal_64.c).
#pragma once

#include "framework/driver/native/context.h"
#include "framework/driver/native/signals/signal_actions.h"

#include <csignal>

namespace assay::native {

struct PendingSignal {
    int number = 0;
    bool fault = false;  // caused by an instruction of the target
    siginfo_t info{};
    std::uint64_t error = 0, trap = 0;  // of a fault: as sigcontext has them
};

// Makes the target enter the handler. `stack` is the alternate stack, which the handler uses if
// its flags say so and the target is not on it. False if the frame cannot be written.
bool push_signal_frame(Context& context, const KernelAction& action, const PendingSignal& signal,
                       std::uint64_t mask, const stack_t& stack);
// Makes the target go on as the frame says. False if it cannot be read.
bool pop_signal_frame(Context& context, std::uint64_t& mask, stack_t& stack);
// True if the stack pointer is on the alternate stack.
bool is_on(const stack_t& stack, std::uint64_t sp);

}  // namespace assay::native
