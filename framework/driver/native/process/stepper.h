// Makes one thread leave translated code at the end of a basic block, by single steps. The trap
// flag makes the processor report each instruction, until one is the first of a basic block. The
// steps change no counts, and no state that other threads see.
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/machine/driver_lock.h"
#include "framework/driver/native/trace/thread_trace.h"

#include <ucontext.h>
#include <csignal>

namespace assay::native {

class Stepper {
  public:
    // `trace` determines the thread's own step buffer in the cache.
    Stepper(const CodeCache& cache, DriverLock& lock, const ThreadTrace& trace)
        : cache_(cache), lock_(lock), trace_(trace) {}

    // To be called before translated code is entered: from now on come_back() makes it return.
    void entering();
    // Makes translated code return at the start of its first basic block.
    void step_from_entry(Context& context);
    void left(Context& context);

    // --- Called in signal handlers.

    // Makes interrupted or entered translated code return at the end of a basic block. False if the
    // thread runs no translated code.
    bool come_back(Context& context, ucontext_t* interrupted);
    // Like come_back(), but only for interrupted code that is not stepping yet.
    void interrupt(Context& context, ucontext_t* interrupted);
    bool is_stepping() const { return stepping_; }
    // True if a SIGTRAP reports a step.
    bool is_step(const siginfo_t& info) const;
    void on_step(Context& context, ucontext_t* interrupted);
    // A fault ends the steps. Returns the place in translated code that has faulted, also if a copy
    // in the step buffer did.
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
    bool pushes_flags_ = false;      // the stepped instruction pushes flags
    std::uint64_t after_aside_ = 0;  // the place to continue at after the step buffer; 0: not in it
};

}  // namespace assay::native
