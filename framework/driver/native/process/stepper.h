// Has one thread leave translated code at the end of a basic block, by single steps: the trap flag
// makes the processor report each instruction, until it is the first of a basic block. That changes
// nothing that other threads see, and leaves the counts as they are.
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/machine/driver_lock.h"
#include "framework/driver/native/trace/thread_trace.h"

#include <ucontext.h>
#include <csignal>

namespace assay::native {

class Stepper {
  public:
    // The thread's trace tells which step buffer of the cache is its own.
    Stepper(const CodeCache& cache, DriverLock& lock, const ThreadTrace& trace)
        : cache_(cache), lock_(lock), trace_(trace) {}

    // Translated code is about to be entered: from now on come_back() sees to it that it comes
    // back.
    void entering();
    // It shall come back from the first basic block on.
    void step_from_entry(Context& context);
    void left(Context& context);

    // --- In handlers of signals.

    // Translated code that is interrupted, or about to be entered, comes back at the end of a basic
    // block. False if there is none.
    bool come_back(Context& context, ucontext_t* interrupted);
    // The same with what is interrupted, unless it is on its way already.
    void interrupt(Context& context, ucontext_t* interrupted);
    bool is_stepping() const { return stepping_; }
    // Whether a SIGTRAP, while it is stepping, reports a step.
    bool is_step(const siginfo_t& info) const;
    void on_step(Context& context, ucontext_t* interrupted);
    // A fault ends the steps: where in translated code it has happened, if perhaps in a copy in the
    // step buffer.
    std::uint64_t end_at_fault(std::uint64_t host_pc);

  private:
    void step_from(ucontext_t* interrupted);
    bool leave_at_entry(Context& context, ucontext_t* interrupted);
    void step_over_string(ucontext_t* interrupted);
    void step_over_call(ucontext_t* interrupted);
    std::uint64_t step_buffer() const { return cache_.step_buffer(trace_.slot()); }

    const CodeCache& cache_;
    DriverLock& lock_;
    const ThreadTrace& trace_;
    volatile bool entering_ = false;
    volatile bool stepping_ = false;
    bool pushes_flags_ = false;      // the instruction being stepped does
    std::uint64_t after_aside_ = 0;  // where to go on behind the one in the step buffer
};

}  // namespace assay::native
