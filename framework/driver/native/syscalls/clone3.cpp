// clone3(2): what of it clone(2) can do, with the kernel's own checks (kernel/fork.c,
// copy_clone_args_from_user and clone3_args_valid).
#include "framework/driver/native/syscalls/clone.h"

#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <linux/sched.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace assay::native {
namespace {

constexpr std::uint64_t kLegacyFlags = 0xffffffff,
                        kKnownCloneFlags = kLegacyFlags | CLONE_CLEAR_SIGHAND;
constexpr std::uint64_t kExitSignal = 0xff;
constexpr std::uint64_t kMostSignals = 64;

bool all_zero(const unsigned char* begin, const unsigned char* end) {
    return std::all_of(begin, end, [](unsigned char byte) { return byte == 0; });
}

// Programs may know a larger structure than the driver does, and leave its end empty.
long read_arguments(std::uint64_t from, std::uint64_t bytes, clone_args& arguments) {
    std::array<unsigned char, kPage> raw{};
    if (bytes > kPage) return -E2BIG;
    if (bytes < CLONE_ARGS_SIZE_VER0) return -EINVAL;
    if (!read_target(from, raw.data(), bytes)) return -EFAULT;
    if (!all_zero(raw.data() + sizeof arguments, raw.data() + raw.size())) return -E2BIG;
    std::memcpy(&arguments, raw.data(), sizeof arguments);
    return 0;
}

bool is_valid(const clone_args& arguments) {
    const std::uint64_t flags = arguments.flags;
    constexpr std::uint64_t kHandlers = CLONE_SIGHAND | CLONE_CLEAR_SIGHAND;
    if (flags & ~kKnownCloneFlags || flags & (CLONE_DETACHED | (kExitSignal & ~CLONE_NEWTIME)))
        return false;
    if ((flags & kHandlers) == kHandlers || arguments.exit_signal > kMostSignals) return false;
    if (flags & CLONE_PIDFD && flags & CLONE_PARENT_SETTID &&
        arguments.pidfd == arguments.parent_tid)
        return false;
    if (flags & (CLONE_THREAD | CLONE_PARENT) && arguments.exit_signal != 0) return false;
    return (arguments.stack == 0) == (arguments.stack_size == 0);
}

}  // namespace

// The kernel is asked first whether it has the call (since Linux 5.3), and filters of seccomp(2)
// whether they permit it: with no structure it is wrong wherever it is there.
long do_clone3(const Call& call) {
    const long known = pass_on({call.thread, call.number, {}});
    if (known != -EINVAL) return known;
    const std::uint64_t from = call.unsigned_argument(0), bytes = call.unsigned_argument(1);
    clone_args arguments{};
    if (const long error = read_arguments(from, bytes, arguments)) return error;
    if (!is_valid(arguments)) return -EINVAL;
    if (arguments.set_tid_size != 0) return -EPERM;  // as without CAP_CHECKPOINT_RESTORE
    const bool pidfd = arguments.flags & CLONE_PIDFD;
    if (pidfd && arguments.pidfd == 0) return -EFAULT;
    // In clone(2) that bit belongs to the number of the signal.
    if (arguments.flags & CLONE_NEWTIME) return -EINVAL;
    return do_clone(call.thread, {.flags = arguments.flags | arguments.exit_signal,
                                  .stack = arguments.stack + arguments.stack_size,
                                  .parent_tid = arguments.parent_tid,
                                  .child_tid = arguments.child_tid,
                                  .tls = arguments.tls,
                                  .pidfd = pidfd ? arguments.pidfd : 0});
}

}  // namespace assay::native
