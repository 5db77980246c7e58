// Records of system calls (trace_capture_system_calls): number, result and, if wanted, duration.
#pragma once

#include "framework/driver/native/process/process.h"

#include <cstdint>

namespace assay::native {

// The record of one call, created before the call is made. Does nothing if system calls are not
// captured or if the thread does not collect. Callers hold the driver's lock.
class CallRecords {
  public:
    // Records the call already here if it may not return.
    CallRecords(Thread& thread, long number);

    // The thread calls one of the next three functions when it comes back. They do nothing in the
    // child of a fork, which has made no call.
    void has_result(long result);
    // A seccomp filter of the program has refused the call by a signal.
    void has_no_result();
    // A signal came first. The call is made again, or the signal's handler skips it.
    void was_not_made();

  private:
    std::uint32_t site(unsigned kind) const;
    bool is_to_be_recorded() const;
    void record_call();

    Thread& thread_;
    long number_;
    bool wanted_, recorded_ = false;
    pid_t pid_ = 0;            // the process that makes the call
    std::uint32_t instr_ = 0;  // index of the call in the instruction table
    std::uint32_t node_ = 0;   // only if trace::tells_contexts()
    std::uint64_t begin_ = 0;  // nanoseconds, if times are wanted
};

}  // namespace assay::native
