// System calls of the program.
#pragma once

#include "framework/driver/native/process/process.h"
#include "framework/driver/native/process/thread.h"

#include <array>
#include <cstdint>
#include <string>

namespace assay::native {

struct Call {
    Thread& thread;
    long number;
    std::array<long, 6> arguments;

    Process& process() const { return thread.process; }
    std::uint64_t unsigned_argument(unsigned i) const {
        return static_cast<std::uint64_t>(arguments[i]);
    }
    template <typename T>
    T* pointer(unsigned i) const {
        return reinterpret_cast<T*>(arguments[i]);
    }
};

// Executes the system call in Context::gpr. `syscall_pc`: the address of its instruction.
void do_syscall(Thread& thread, std::uint64_t syscall_pc);

// Makes the call without the driver's lock, so that other threads can use the driver meanwhile. A
// signal interrupts the call.
long pass_on(const Call& call);
// Makes a call that does not wait, with the driver's lock. For calls that change state which the
// driver also keeps: both stay the same for each owner of the lock.
long pass_on_locked(const Call& call);
inline bool is_error(long result) {
    return static_cast<unsigned long>(result) > -4096UL;
}

// memory_calls.cpp
long do_look_at_memory(const Call& call);
long do_lock_all(const Call& call);
long do_break(const Call& call);
long do_map(const Call& call);
long do_unmap(const Call& call);
long do_protect(const Call& call);
long do_protect_by_key(const Call& call);
long do_allocate_key(const Call& call);
long do_remap(const Call& call);
long do_advise(const Call& call);
long do_attach(const Call& call);
long do_detach(const Call& call);
// process_calls.cpp
long do_clone3(const Call& call);
long do_arch_prctl(const Call& call);
long do_prctl(const Call& call);
long do_seccomp(const Call& call);
long do_personality(const Call& call);
long do_set_tid_address(const Call& call);
long do_set_robust_list(const Call& call);
long do_limit(const Call& call);
// Ends the thread, because strict mode forbids the call.
void do_call_in_strict_mode(const Call& call);
// execute.cpp
long do_execute(const Call& call);
// signal_calls.cpp
long do_signal_action(const Call& call);
long do_signal_mask(const Call& call);
long do_signal_stack(const Call& call);
long do_suspend(const Call& call);
long do_wait_for_signal(const Call& call);
long do_poll_with_mask(const Call& call);
long do_wait_for_events_with_mask(const Call& call);  // epoll_pwait(2)
long do_wait_with_sized_mask(const Call& call);       // pselect6(2), io_pgetevents(2)
// trace_calls.cpp
long do_trace(const Call& call);
long do_kill(const Call& call);
// descriptor_calls.cpp
// read, pread64, readv, preadv, preadv2, sendfile, splice.
long do_read(const Call& call);
// ioctl: PROCMAP_QUERY.
long do_control(const Call& call);
bool is_on_own_descriptor(const Call& call);
// getdents64.
long do_list_folder(const Call& call);
// futex_calls.cpp
long do_futex(const Call& call);
// futex_waitv(2) and its relatives.
long do_newer_futex(const Call& call);
// With a schedule: wakes waiting threads at the thread's end, as the kernel would.
void release_futexes(const Thread& thread);

// The vsyscall page: three functions at fixed addresses, which old static programs call. Emulates
// the function at `pc`, and returns from it. False if there is no such function, or if the kernel
// has no such page.
bool call_vsyscall(Thread& thread, std::uint64_t pc);

// clone(2) and its relatives: new threads and processes of the program.

// The arguments of the system call.
struct CloneArguments {
    std::uint64_t flags = 0;
    std::uint64_t stack = 0;
    std::uint64_t parent_tid = 0;
    std::uint64_t child_tid = 0;
    std::uint64_t tls = 0;
    std::uint64_t pidfd = 0;  // clone3(2) only; clone(2) uses parent_tid for it
};
long do_clone(Thread& thread, const CloneArguments& arguments);
// exit(2): ends only this thread.
void do_exit(Thread& thread, int status);

// Files of /proc that describe the process itself. The kernel would show the driver's data, so the
// driver answers calls that name such files.

// The file of this process that the path names; `folder` as in openat(2).
ProcFile proc_file(int folder, const std::string& path);

// open, creat, openat, openat2.
long do_open(const Call& call);
long do_truncate(const Call& call);
// readlink, readlinkat.
long do_readlink(const Call& call);
// stat, access and their relatives: calls that query a path.
long do_look(const Call& call);

// How the driver handles each system call.

enum CallTraits : std::uint8_t {
    kInStrictMode = 1,  // seccomp(2) permits it in strict mode
    kFillsBuffer = 2,   // writes to the second argument; the third is its size
    kMayNotReturn = 4,
};

constexpr std::uint8_t kNoDescriptor = 0xff;

struct CallRow {
    long number;
    long (*handler)(const Call&);
    bool (*may_wait)(const Call&);
    // The index of an argument that is a descriptor. It has to be checked because programs try
    // descriptors to find open ones, or use a wrong one.
    std::uint8_t descriptor = kNoDescriptor;
    std::uint8_t traits = 0;
};

// Returns a default row for an unlisted call: the driver passes it on, and it does not wait.
const CallRow& row_of(long number);

}  // namespace assay::native
