#include "framework/driver/native/syscalls/waiting_calls.h"

#include "framework/driver/native/machine/target_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace assay::native {
namespace {

// Filters of the program's need not permit the driver's own calls.
bool waits_for(const Call& call, short events) {
    if (call.process().filters_calls) return true;
    const auto descriptor = static_cast<int>(call.arguments[0]);
    pollfd state{descriptor, events, 0};
    if (poll(&state, 1, 0) != 0) return false;
    return (fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0;
}

// There is room for so much in a pipe that poll(2) finds writable (pipe(7), PIPE_BUF), but not for
// more. Who empties it may be a thread of the program.
bool writing_waits(const Call& call, bool has_size) {
    constexpr std::uint64_t kSurelyFits = 4096;
    if (waits_for(call, POLLOUT)) return true;
    if (has_size && call.unsigned_argument(2) <= kSurelyFits) return false;
    struct stat status {};
    const auto descriptor = static_cast<int>(call.arguments[0]);
    if (fstat(descriptor, &status) != 0) return false;
    return (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) &&
           (fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0;
}

// Of messages, whose flags are that argument.
bool message_waits(const Call& call, unsigned flags, short events) {
    return (call.arguments[flags] & MSG_DONTWAIT) == 0 && waits_for(call, events);
}

// A timespec or a timeval.
bool is_no_time(const Call& call, unsigned argument) {
    long time[2];
    return call.arguments[argument] != 0 &&
           read_target(call.unsigned_argument(argument), time, sizeof time) && time[0] == 0 &&
           time[1] == 0;
}

bool futex_waits(long operation) {
    switch (operation & FUTEX_CMD_MASK) {
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

}  // namespace

bool may_wait(const Call& call) {
    const auto& a = call.arguments;
    switch (call.number) {
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
        case SYS_pause:
        case SYS_rt_sigsuspend:
        case SYS_connect:
        case SYS_msgrcv:
        case SYS_msgsnd:
        case SYS_semop:
        case SYS_semtimedop:
        case SYS_mq_timedsend:
        case SYS_mq_timedreceive:
        case SYS_io_getevents:
        case SYS_io_pgetevents:
        case SYS_io_uring_enter:
        case SYS_splice:
        case SYS_tee:
        case SYS_vmsplice:
        case SYS_sendfile:
            return true;
        case SYS_futex:
            return futex_waits(a[1]);
        case SYS_rt_sigtimedwait:
            return !is_no_time(call, 2);
        case SYS_wait4:
            return (a[2] & WNOHANG) == 0;
        case SYS_waitid:
            return (a[3] & WNOHANG) == 0;
        case SYS_poll:
            return static_cast<int>(a[2]) != 0;
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
            return static_cast<int>(a[3]) != 0;
        case SYS_epoll_pwait2:
            return !is_no_time(call, 3);
        case SYS_ppoll:
            return !is_no_time(call, 2);
        case SYS_select:
        case SYS_pselect6:
            return !is_no_time(call, 4);
        case SYS_flock:
            return (a[1] & LOCK_NB) == 0;
        case SYS_fcntl:
            return a[1] == F_SETLKW || a[1] == F_OFD_SETLKW;
        case SYS_read:
        case SYS_readv:
        case SYS_accept:
        case SYS_accept4:
            return waits_for(call, POLLIN);
        case SYS_recvfrom:
        case SYS_recvmmsg:
            return message_waits(call, 3, POLLIN);
        case SYS_recvmsg:
            return message_waits(call, 2, POLLIN);
        case SYS_write:
            return writing_waits(call, true);
        case SYS_writev:
            return writing_waits(call, false);
        case SYS_sendto:
        case SYS_sendmmsg:
            return message_waits(call, 3, POLLOUT);
        case SYS_sendmsg:
            return message_waits(call, 2, POLLOUT);
        default:
            return false;
    }
}

}  // namespace assay::native
