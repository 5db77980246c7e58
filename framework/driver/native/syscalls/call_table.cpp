// How the driver handles each system call.
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <array>
#include <cerrno>
#include <csignal>

namespace assay::native {
namespace {

// Missing in old headers: mseal(2), Linux 6.10; futex_waitv(2), 5.16, and its relatives, 6.7.
constexpr long kMemorySeal = 462;
constexpr long kFutexWaitMany = 449, kFutexWake = 454, kFutexWait = 455, kFutexRequeue = 456;

bool never_waits(const Call& /*call*/) {
    return false;
}

// --- Is a call likely to wait? Schedule then runs the program's other threads meanwhile.
//     For many calls it depends on whether there is something to read, or room to write, right now.

// With a seccomp filter, which may forbid poll(2), the function assumes that the call waits.
bool waits_for(const Call& call, short events) {
    if (call.process().filters_calls) return true;
    const auto descriptor = static_cast<int>(call.arguments[0]);
    pollfd state{descriptor, events, 0};
    if (poll(&state, 1, 0) != 0) return false;
    return (fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0;
}

// A pipe that poll(2) reports as writable has room for PIPE_BUF bytes (pipe(7)), but perhaps not
// for more. The reader that empties it may be a thread of the program.
bool may_wait_for_room(const Call& call, bool has_size) {
    constexpr std::uint64_t kSurelyFits = 4096;
    if (waits_for(call, POLLOUT)) return true;
    if (has_size && call.unsigned_argument(2) <= kSurelyFits) return false;
    struct stat status {};
    const auto descriptor = static_cast<int>(call.arguments[0]);
    if (fstat(descriptor, &status) != 0) return false;
    return (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) &&
           (fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0;
}

// True if the argument points to a timespec or timeval of 0.
bool is_no_time(const Call& call, unsigned argument) {
    long time[2];
    return call.arguments[argument] != 0 &&
           read_target(call.unsigned_argument(argument), time, sizeof time) && time[0] == 0 &&
           time[1] == 0;
}

bool surely_waits(const Call& /*call*/) {
    return true;
}

bool futex_waits(const Call& call) {
    switch (call.arguments[1] & FUTEX_CMD_MASK) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET:
        case FUTEX_WAIT_REQUEUE_PI:
        case FUTEX_LOCK_PI:
        case 13:  // FUTEX_LOCK_PI2, since Linux 5.14
            return true;
        default:
            return false;
    }
}

bool record_lock_waits(const Call& call) {
    return call.arguments[1] == F_SETLKW || call.arguments[1] == F_OFD_SETLKW;
}

bool reading_waits(const Call& call) {
    return waits_for(call, POLLIN);
}

bool writing_waits(const Call& call) {
    return may_wait_for_room(call, true);
}

bool writing_pieces_waits(const Call& call) {
    return may_wait_for_room(call, false);
}

// `flags`: the index of the argument with the flags.
template <unsigned flags>
bool receiving_waits(const Call& call) {
    return (call.arguments[flags] & MSG_DONTWAIT) == 0 && waits_for(call, POLLIN);
}

template <unsigned flags>
bool sending_waits(const Call& call) {
    return (call.arguments[flags] & MSG_DONTWAIT) == 0 && waits_for(call, POLLOUT);
}

// True unless the timeout, a timespec or timeval, is 0. `time`: the index of its argument.
template <unsigned time>
bool waits_until(const Call& call) {
    return !is_no_time(call, time);
}

// True unless the timeout in milliseconds is 0. `milliseconds`: the index of its argument.
template <unsigned milliseconds>
bool waits_so_long(const Call& call) {
    return static_cast<int>(call.arguments[milliseconds]) != 0;
}
// True unless the argument has the flag `at_once`.
template <unsigned flags, long at_once>
bool waits_unless(const Call& call) {
    return (call.arguments[flags] & at_once) == 0;
}

// --- Calls whose arguments only have to be put in order.

long do_fork(const Call& call) {
    return do_clone(call.thread, {.flags = SIGCHLD});
}

long do_vfork(const Call& call) {
    return do_clone(call.thread, {.flags = CLONE_VM | CLONE_VFORK | SIGCHLD});
}

long do_clone2(const Call& call) {
    constexpr std::uint64_t kFlags = 0xffffffff;
    return do_clone(call.thread, {call.unsigned_argument(0) & kFlags, call.unsigned_argument(1),
                                  call.unsigned_argument(2), call.unsigned_argument(3),
                                  call.unsigned_argument(4)});
}

long do_close_range(const Call& call) {
    return close_other_descriptors(static_cast<unsigned>(call.arguments[0]),
                                   static_cast<unsigned>(call.arguments[1]),
                                   static_cast<unsigned>(call.arguments[2]));
}

long do_exit_thread(const Call& call) {
    do_exit(call.thread, static_cast<int>(call.arguments[0]));
    return 0;
}

long do_exit_process(const Call& call) {
    call.thread.finish(static_cast<int>(call.arguments[0]));
    return 0;
}

// Fails because the driver's libc has already registered its own rseq area.
long do_register_rseq(const Call& /*call*/) {
    return -ENOSYS;
}

long do_yield(const Call& call) {
    if (!call.process().schedule.wanted()) return pass_on(call);
    call.process().schedule.pass(call.thread);
    return 0;
}

// --- The table, by number.

constexpr CallRow kRows[] = {
    {SYS_read, do_read, reading_waits, 0, kInStrictMode | kFillsBuffer},
    {SYS_write, pass_on, writing_waits, 0, kInStrictMode},
    {SYS_open, do_open, never_waits},
    {SYS_close, pass_on, never_waits, 0},
    {SYS_stat, do_look, never_waits},
    {SYS_fstat, pass_on, never_waits, 0},
    {SYS_poll, pass_on, waits_so_long<2>},
    {SYS_lseek, pass_on, never_waits, 0},
    {SYS_mmap, do_map, never_waits, 4},
    {SYS_mprotect, do_protect, never_waits},
    {SYS_munmap, do_unmap, never_waits},
    {SYS_brk, do_break, never_waits},
    {SYS_rt_sigaction, do_signal_action, never_waits},
    {SYS_rt_sigprocmask, do_signal_mask, never_waits},
    {SYS_rt_sigreturn, pass_on, never_waits, kNoDescriptor, kMayNotReturn},
    {SYS_ioctl, do_control, never_waits, 0},
    {SYS_pread64, do_read, never_waits, 0, kFillsBuffer},
    {SYS_pwrite64, pass_on, never_waits, 0},
    {SYS_readv, do_read, reading_waits, 0},
    {SYS_writev, pass_on, writing_pieces_waits, 0},
    {SYS_access, do_look, never_waits},
    {SYS_select, pass_on, waits_until<4>},
    {SYS_sched_yield, do_yield, never_waits},
    {SYS_mremap, do_remap, never_waits},
    {SYS_msync, do_look_at_memory, never_waits},
    {SYS_mincore, do_look_at_memory, never_waits},
    {SYS_madvise, do_advise, never_waits},
    {SYS_shmat, do_attach, never_waits},
    {SYS_dup, pass_on, never_waits, 0},
    {SYS_dup2, pass_on, never_waits, 0},
    {SYS_pause, pass_on, surely_waits},
    {SYS_nanosleep, pass_on, surely_waits},
    {SYS_sendfile, do_read, surely_waits},
    {SYS_connect, pass_on, surely_waits},
    {SYS_accept, pass_on, reading_waits},
    {SYS_sendto, pass_on, sending_waits<3>},
    {SYS_recvfrom, pass_on, receiving_waits<3>, kNoDescriptor, kFillsBuffer},
    {SYS_sendmsg, pass_on, sending_waits<2>},
    {SYS_recvmsg, pass_on, receiving_waits<2>},
    {SYS_clone, do_clone2, never_waits},
    {SYS_fork, do_fork, never_waits},
    {SYS_vfork, do_vfork, never_waits},
    {SYS_execve, do_execute, never_waits, kNoDescriptor, kMayNotReturn},
    {SYS_exit, do_exit_thread, never_waits, kNoDescriptor, kInStrictMode | kMayNotReturn},
    {SYS_wait4, pass_on, waits_unless<2, WNOHANG>},
    {SYS_kill, do_kill, never_waits},
    {SYS_semop, pass_on, surely_waits},
    {SYS_shmdt, do_detach, never_waits},
    {SYS_msgsnd, pass_on, surely_waits},
    {SYS_msgrcv, pass_on, surely_waits},
    {SYS_fcntl, pass_on, record_lock_waits, 0},
    {SYS_flock, pass_on, waits_unless<1, LOCK_NB>, 0},
    {SYS_fsync, pass_on, never_waits, 0},
    {SYS_fdatasync, pass_on, never_waits, 0},
    {SYS_truncate, do_truncate, never_waits},
    {SYS_ftruncate, pass_on, never_waits, 0},
    {SYS_fchdir, pass_on, never_waits, 0},
    {SYS_creat, do_open, never_waits},
    {SYS_readlink, do_readlink, never_waits},
    {SYS_fchmod, pass_on, never_waits, 0},
    {SYS_fchown, pass_on, never_waits, 0},
    {SYS_getrlimit, do_limit, never_waits},
    {SYS_ptrace, do_trace, never_waits},
    {SYS_rt_sigtimedwait, do_wait_for_signal, waits_until<2>},
    {SYS_rt_sigsuspend, do_suspend, surely_waits},
    {SYS_sigaltstack, do_signal_stack, never_waits},
    {SYS_personality, do_personality, never_waits},
    {SYS_fstatfs, pass_on, never_waits, 0},
    {SYS_mlock, do_look_at_memory, never_waits},
    {SYS_munlock, do_look_at_memory, never_waits},
    {SYS_mlockall, do_lock_all, never_waits},
    {SYS_prctl, do_prctl, never_waits},
    {SYS_arch_prctl, do_arch_prctl, never_waits},
    {SYS_setrlimit, do_limit, never_waits},
    {SYS_tkill, do_kill, never_waits},
    {SYS_futex, do_futex, futex_waits},
    {SYS_io_getevents, pass_on, surely_waits},
    {SYS_getdents64, do_list_folder, never_waits},
    {SYS_set_tid_address, do_set_tid_address, never_waits},
    {SYS_semtimedop, pass_on, surely_waits},
    {SYS_clock_nanosleep, pass_on, surely_waits},
    {SYS_exit_group, do_exit_process, never_waits, kNoDescriptor, kMayNotReturn},
    {SYS_epoll_wait, pass_on, waits_so_long<3>},
    {SYS_tgkill, do_kill, never_waits},
    {SYS_mq_timedsend, pass_on, surely_waits},
    {SYS_mq_timedreceive, pass_on, surely_waits},
    {SYS_waitid, pass_on, waits_unless<3, WNOHANG>},
    {SYS_openat, do_open, never_waits},
    {SYS_newfstatat, do_look, never_waits, 0},
    {SYS_readlinkat, do_readlink, never_waits},
    {SYS_faccessat, do_look, never_waits},
    {SYS_pselect6, do_wait_with_sized_mask, waits_until<4>},
    {SYS_ppoll, do_poll_with_mask, waits_until<2>},
    {SYS_set_robust_list, do_set_robust_list, never_waits},
    {SYS_splice, do_read, surely_waits},
    {SYS_tee, pass_on, surely_waits},
    {SYS_vmsplice, pass_on, surely_waits},
    {SYS_epoll_pwait, do_wait_for_events_with_mask, waits_so_long<3>},
    {SYS_fallocate, pass_on, never_waits, 0},
    {SYS_accept4, pass_on, reading_waits},
    {SYS_dup3, pass_on, never_waits, 0},
    {SYS_preadv, do_read, never_waits},
    {SYS_recvmmsg, pass_on, receiving_waits<3>},
    {SYS_prlimit64, do_limit, never_waits},
    {SYS_sendmmsg, pass_on, sending_waits<3>},
    {SYS_seccomp, do_seccomp, never_waits},
    {SYS_execveat, do_execute, never_waits, kNoDescriptor, kMayNotReturn},
    {SYS_mlock2, do_look_at_memory, never_waits},
    {SYS_preadv2, do_read, never_waits},
    {SYS_pkey_mprotect, do_protect_by_key, never_waits},
    {SYS_pkey_alloc, do_allocate_key, never_waits},
    {SYS_statx, do_look, never_waits, 0},
    {SYS_io_pgetevents, do_wait_with_sized_mask, surely_waits},
    {SYS_rseq, do_register_rseq, never_waits},
    {SYS_io_uring_enter, pass_on, surely_waits},
    {SYS_clone3, do_clone3, never_waits},
    {SYS_close_range, do_close_range, never_waits},
    {SYS_openat2, do_open, never_waits},
    {SYS_faccessat2, do_look, never_waits},
    {SYS_epoll_pwait2, do_wait_for_events_with_mask, waits_until<3>},
    {kFutexWaitMany, do_newer_futex, never_waits},
    {kFutexWake, do_newer_futex, never_waits},
    {kFutexWait, do_newer_futex, never_waits},
    {kFutexRequeue, do_newer_futex, never_waits},
    {kMemorySeal, do_look_at_memory, never_waits},
};

constexpr CallRow kNoRow{-1, pass_on, never_waits};
constexpr std::size_t kNumbers = 512;

constexpr std::array<std::uint8_t, kNumbers> index_rows() {
    std::array<std::uint8_t, kNumbers> indices{};  // from 1 on; 0: no row
    std::uint8_t index = 0;
    for (const CallRow& row : kRows) indices[static_cast<std::size_t>(row.number)] = ++index;
    return indices;
}
static_assert(std::size(kRows) < UINT8_MAX);

}  // namespace

const CallRow& row_of(long number) {
    static constexpr auto kIndices = index_rows();
    const auto at = static_cast<std::uint64_t>(number);
    const unsigned index = at < kNumbers ? kIndices[at] : 0;
    return index == 0 ? kNoRow : kRows[index - 1];
}

}  // namespace assay::native
