// System calls of the target.
#pragma once

#include "framework/driver/native/process/process.h"

#include <array>

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

// clone3.cpp
long do_clone3(const Call& call);
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

}  // namespace assay::native
