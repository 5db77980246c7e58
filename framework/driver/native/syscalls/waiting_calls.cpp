#include "framework/driver/native/syscalls/waiting_calls.h"

#include "framework/driver/native/machine/target_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

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

// A timespec or a timeval.
bool is_no_time(const Call& call, unsigned argument) {
    long time[2];
    return call.arguments[argument] != 0 &&
           read_target(call.unsigned_argument(argument), time, sizeof time) && time[0] == 0 &&
           time[1] == 0;
}

}  // namespace

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

template <unsigned flags>
bool receiving_waits(const Call& call) {
    return (call.arguments[flags] & MSG_DONTWAIT) == 0 && waits_for(call, POLLIN);
}
template bool receiving_waits<2>(const Call&);
template bool receiving_waits<3>(const Call&);

template <unsigned flags>
bool sending_waits(const Call& call) {
    return (call.arguments[flags] & MSG_DONTWAIT) == 0 && waits_for(call, POLLOUT);
}
template bool sending_waits<2>(const Call&);
template bool sending_waits<3>(const Call&);

template <unsigned time>
bool waits_until(const Call& call) {
    return !is_no_time(call, time);
}
template bool waits_until<2>(const Call&);
template bool waits_until<3>(const Call&);
template bool waits_until<4>(const Call&);

}  // namespace assay::native
