// System calls of the target.
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

// Emulates or passes on the system call in Context::gpr, of the instruction at `syscall_pc`.
void do_syscall(Thread& thread, std::uint64_t syscall_pc);

// Makes the call. Other threads use the driver meanwhile, and a signal ends it.
long pass_on(const Call& call);
// For calls that change what the driver keeps account of: the account and the kernel agree for
// whoever holds the lock. They do not wait for anything.
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
// In strict mode: one that it does not permit. Ends the thread.
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
// With Schedule: what the kernel would do for others at the thread's end.
void release_futexes(const Thread& thread);

// The vsyscall page: three functions at fixed addresses, which old static programs call.

// Does what the call at `pc` would do, and returns from it. False if there is no such function, or
// the kernel has no such page.
bool call_vsyscall(Thread& thread, std::uint64_t pc);

// clone(2) and its relatives: new threads and processes of the target.

// As the system call's arguments. Return what it returns to the target.
struct CloneArguments {
    std::uint64_t flags = 0;
    std::uint64_t stack = 0;
    std::uint64_t parent_tid = 0;
    std::uint64_t child_tid = 0;
    std::uint64_t tls = 0;
    std::uint64_t pidfd = 0;  // clone3(2) only: clone(2) has it in the place of parent_tid
};
long do_clone(Thread& thread, const CloneArguments& arguments);
// exit(2), of this thread alone.
void do_exit(Thread& thread, int status);

// The files of /proc that describe the process itself: they tell of the driver what a program
// expects of itself. The calls that name files see the program's.

// Which file of this process the path names, from `folder` on as openat(2) takes it.
ProcFile proc_file(int folder, const std::string& path);

// open, creat, openat, openat2.
long do_open(const Call& call);
long do_truncate(const Call& call);
// readlink, readlinkat.
long do_readlink(const Call& call);
// stat, access and their relatives: calls that look at what a path names.
long do_look(const Call& call);

}  // namespace assay::native
