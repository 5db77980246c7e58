#include "framework/driver/native/syscalls/own_descriptors.h"

#include "framework/trace/high_descriptor.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <set>

namespace assay::native {
namespace {

std::set<unsigned>& own() {
    static std::set<unsigned> descriptors;
    return descriptors;
}

}  // namespace

int own_descriptor(int descriptor) {
    return adopt_descriptor(trace::move_high(descriptor));
}

int adopt_descriptor(int descriptor) {
    if (descriptor < 0) return descriptor;
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    own().insert(static_cast<unsigned>(descriptor));
    return descriptor;
}

void close_own_descriptor(int descriptor) {
    if (descriptor < 0) return;
    own().erase(static_cast<unsigned>(descriptor));
    close(descriptor);
}

bool is_own_descriptor(long descriptor) {
    return own().contains(static_cast<unsigned>(descriptor));
}

long close_other_descriptors(unsigned first, unsigned last, unsigned flags) {
    const auto close_range = [flags](unsigned from, unsigned to) -> long {
        return syscall(SYS_close_range, from, to, flags) < 0 ? -errno : 0;
    };
    for (auto it = own().lower_bound(first); it != own().end() && *it <= last; ++it) {
        if (*it > first)
            if (const long error = close_range(first, *it - 1)) return error;
        if (*it == last) return 0;
        first = *it + 1;
    }
    return close_range(first, last);
}

}  // namespace assay::native
