// What the trace says of a system call (trace_capture_system_calls): its number, its result and,
// if that is asked for, how long it took.
#pragma once

#include "framework/driver/native/process/process.h"

#include <cstdint>

namespace assay::native {

// Of one call, from before it is made until it has returned. For who holds the driver's lock. Where
// system calls are not captured, or the thread does not collect, it does nothing.
class CallRecords {
  public:
    // Calls that may not return are recorded here.
    CallRecords(Thread& thread, long number);

    // One of these, where the thread comes back. Not the child of a fork, which has made no call:
    // there they do nothing.
    void has_result(long result);
    // A filter of the program's has refused it, by a signal.
    void has_no_result();
    // A signal came before it. The call is made again, or the signal's handler leaves it.
    void was_not_made();

  private:
    std::uint32_t site(unsigned kind) const;
    bool is_to_be_recorded() const;
    void record_call();

    Thread& thread_;
    long number_;
    bool wanted_, recorded_ = false;
    pid_t pid_ = 0;            // the process that makes the call
    std::uint32_t instr_ = 0;  // the call, in the instruction table
    std::uint32_t node_ = 0;   // where trace::tells_contexts()
    std::uint64_t begin_ = 0;  // nanoseconds, if times are wanted
};

}  // namespace assay::native
