// execve(2) and execveat(2) of the target: the new program runs under a driver of its own, with a
// trace segment of its own, unless children are not followed or the driver cannot run it.
#pragma once

namespace assay::native {

class Thread;

// The arguments of execveat(2); execve(2) is the same with AT_FDCWD and 0.
struct ExecCall {
    int folder;
    const char* path;
    char* const* arguments;
    char* const* environment;
    int flags;
};

// Returns only if it fails, with the kernel's error, or with kNotCalled if a signal is to be
// delivered first. The caller holds the driver's lock.
long execute(Thread& thread, ExecCall call);

}  // namespace assay::native
