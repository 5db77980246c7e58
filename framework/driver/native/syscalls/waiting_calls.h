// Whether a system call is likely to wait for something, for Schedule: so that the other threads of
// the program run meanwhile. Where its number does not tell, what counts is whether there is
// anything to read, or room to write, at the moment.
#pragma once

#include "framework/driver/native/syscalls/syscalls.h"

namespace assay::native {

bool surely_waits(const Call& call);
bool futex_waits(const Call& call);
bool record_lock_waits(const Call& call);  // fcntl(2)
bool reading_waits(const Call& call);      // from the descriptor that is the first argument
bool writing_waits(const Call& call);
bool writing_pieces_waits(const Call& call);  // writev(2)

// Of messages, whose flags are that argument.
template <unsigned flags>
bool receiving_waits(const Call& call);
template <unsigned flags>
bool sending_waits(const Call& call);

// Unless a timespec or timeval, which is that argument, is no time at all.
template <unsigned time>
bool waits_until(const Call& call);
// The same of a number of milliseconds.
template <unsigned milliseconds>
bool waits_so_long(const Call& call) {
    return static_cast<int>(call.arguments[milliseconds]) != 0;
}
// Unless the argument has that flag.
template <unsigned flags, long at_once>
bool waits_unless(const Call& call) {
    return (call.arguments[flags] & at_once) == 0;
}

}  // namespace assay::native
