// The target's calls on descriptors: those of the driver are not open, for the target.
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/syscalls/call_table.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

namespace assay::native {
namespace {

// A folder of /proc with the descriptors of this process.
bool lists_descriptors(long descriptor) {
    std::array<char, 64> target{};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t length = readlink(link.c_str(), target.data(), target.size());
    const std::string_view path(target.data(),
                                static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    return path.starts_with("/proc/" + std::to_string(getpid()) + "/") &&
           (path.ends_with("/fd") || path.ends_with("/fdinfo"));
}

bool names_own_descriptor(std::string_view name) {
    long number = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    return error == std::errc() && end == name.data() + name.size() && is_own_descriptor(number);
}

// The entries of getdents64(2), a `linux_dirent64` each, without those of the driver.
std::string without_own(const std::string& entries) {
    constexpr std::size_t kLengthAt = offsetof(dirent64, d_reclen);
    constexpr std::size_t kNameAt = offsetof(dirent64, d_name);
    std::string kept;
    for (std::size_t at = 0; at + kNameAt < entries.size();) {
        unsigned short length = 0;
        std::memcpy(&length, entries.data() + at + kLengthAt, sizeof length);
        if (!names_own_descriptor(entries.c_str() + at + kNameAt))
            kept += entries.substr(at, length);
        at += length;
    }
    return kept;
}

}  // namespace

bool is_on_own_descriptor(const Call& call) {
    const int argument = row_of(call.number).descriptor;
    const bool without = call.number == SYS_mmap && (call.arguments[3] & MAP_ANONYMOUS);
    if (argument != kNoDescriptor && !without &&
        is_own_descriptor(call.arguments[static_cast<unsigned>(argument)]))
        return true;
    // It cannot take the place of one either.
    return (call.number == SYS_dup2 || call.number == SYS_dup3) &&
           is_own_descriptor(call.arguments[1]);
}

long do_list_folder(const Call& call) {
    if (!lists_descriptors(call.arguments[0])) return pass_on(call);
    for (;;) {
        const long got = pass_on(call);
        if (got <= 0) return got;
        std::string entries(static_cast<std::size_t>(got), '\0');
        if (!read_target(call.unsigned_argument(1), entries.data(), entries.size())) return -EFAULT;
        const std::string kept = without_own(entries);
        if (kept.empty()) continue;  // which would be the end
        if (!write_target(call.unsigned_argument(1), kept.data(), kept.size())) return -EFAULT;
        return static_cast<long>(kept.size());
    }
}

}  // namespace assay::native
