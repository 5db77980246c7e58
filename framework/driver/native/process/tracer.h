// The tracer of a thread that has asked to be traced (PTRACE_TRACEME), which is its parent: see
// syscalls/trace_calls.cpp.
#pragma once

namespace assay::native {

class Thread;

// Whether a process is a profiled one, too.
bool runs_in_driver(long pid);
// Has the kernel stop the thread for its tracer at the next signal. False if that is gone. Ends the
// process with a message if it cannot be traced.
bool begin_stop_for_tracer(Thread& thread);
// Behind that stop, with the result of the system call that it came with.
void end_stop_for_tracer(Thread& thread, long result);
// With a signal pending: stops the thread for its tracer, if it has one, and there. False if the
// tracer has taken the signal away.
bool stop_for_tracer(Thread& thread);
// That result if the tracer's driver has let the thread go, in the place of a system call's 0.
inline constexpr long kLetGo = 1;

}  // namespace assay::native
