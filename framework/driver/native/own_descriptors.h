// File descriptors of the driver, which lives in the process of the program.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace assay::native {

// Moves `descriptor` out of the way of the program's, which are the lowest free ones; closed on
// exec. Returns the new number, or -1.
inline int own_descriptor(int descriptor) {
    constexpr int kFirstOwn = 900;  // below the usual limit of 1024
    int own = fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstOwn);
    if (own < 0) own = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    close(descriptor);
    return own;
}

}  // namespace assay::native
