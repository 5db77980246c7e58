#include "framework/driver/native/hidden_descriptors.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

namespace assay::native {

void HiddenDescriptors::take(const trace::Launch& launch) {
    channel_ = launch.channel_fd;
    lifeline_ = launch.lifeline_fd;
    for (const int descriptor : {channel_, lifeline_})
        if (descriptor >= 0) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

void HiddenDescriptors::replace_lifeline(int own) {
    if (lifeline_ >= 0) close(lifeline_);
    lifeline_ = own;
}

long HiddenDescriptors::close_range(unsigned first, unsigned last, unsigned flags) const {
    if (first > last) return -EINVAL;
    std::array<int, 2> hidden{channel_, lifeline_};
    std::sort(hidden.begin(), hidden.end());
    const auto close = [flags](unsigned from, unsigned to) -> long {
        return syscall(SYS_close_range, from, to, flags) < 0 ? -errno : 0;
    };
    for (const int descriptor : hidden) {
        if (descriptor < 0) continue;
        const auto number = static_cast<unsigned>(descriptor);
        if (number < first || number > last) continue;
        if (number > first)
            if (const long error = close(first, number - 1)) return error;
        if (number == last) return 0;
        first = number + 1;
    }
    return close(first, last);
}

}  // namespace assay::native
