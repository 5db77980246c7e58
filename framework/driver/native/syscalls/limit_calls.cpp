// getrlimit(2), setrlimit(2) and prlimit(2). Limits of memory would count the driver's, which is
// most of it: they are remembered and shown, but not enforced.
#include "framework/driver/native/memory/memory_limits.h"

#include "framework/driver/native/load/initial_stack.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <optional>

namespace assay::native {
namespace {

// What the call asks for, in the terms of prlimit(2): addresses of the new and the old limit, or 0.
struct LimitRequest {
    long pid = 0;
    long resource = 0;
    std::uint64_t wanted = 0, old = 0;
};

LimitRequest request_of(const Call& call) {
    switch (call.number) {
        case SYS_getrlimit:
            return {.resource = call.arguments[0], .old = call.unsigned_argument(1)};
        case SYS_setrlimit:
            return {.resource = call.arguments[0], .wanted = call.unsigned_argument(1)};
        default:
            return {call.arguments[0], call.arguments[1], call.unsigned_argument(2),
                    call.unsigned_argument(3)};
    }
}

bool is_own(const LimitRequest& request) {
    return request.pid == 0 || request.pid == getpid();
}

bool concerns_driver(const LimitRequest& request) {
    return is_own(request) && (request.resource == RLIMIT_AS || request.resource == RLIMIT_DATA);
}

rlimit current(const MemoryLimits& limits, long resource) {
    const std::optional<rlimit>& set = limits.of(resource);
    rlimit limit{};
    if (!set) getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    return set.value_or(limit);
}

}  // namespace

long do_limit(const Call& call) {
    const LimitRequest request = request_of(call);
    if (!concerns_driver(request)) {
        const long result = pass_on(call);
        const bool sets =
            request.wanted != 0 && is_own(request) && !call.thread.relations.shares_trace;
        if (result == 0 && sets && request.resource == RLIMIT_STACK)
            extend_stack(call.process().program, call.process().memory);
        return result;
    }
    MemoryLimits& limits = call.process().attributes.memory_limits;
    const rlimit before = current(limits, request.resource);
    if (request.wanted != 0) {
        rlimit wanted{};
        if (!read_target(request.wanted, &wanted, sizeof wanted)) return -EFAULT;
        if (wanted.rlim_cur > wanted.rlim_max) return -EINVAL;
        if (wanted.rlim_max > before.rlim_max && geteuid() != 0) return -EPERM;
        limits.of(request.resource) = wanted;
    }
    const bool show = request.old != 0 || call.number == SYS_getrlimit;
    return show && !write_target(request.old, &before, sizeof before) ? -EFAULT : 0;
}

}  // namespace assay::native
