#include "framework/driver/native/syscalls/syscalls.h"

#include "framework/driver/native/machine/target_memory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>
#include <span>
#include <utility>

namespace assay::native {
namespace {

constexpr std::pair<std::string_view, ProcFile> kFiles[] = {
    {"exe", ProcFile::kExecutable},       {"maps", ProcFile::kMaps},
    {"smaps", ProcFile::kSmaps},          {"environ", ProcFile::kEnvironment},
    {"auxv", ProcFile::kAuxiliaryVector},
};

std::string link_target(const std::string& link) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = readlink(link.c_str(), target.data(), target.size());
    return length < 0 ? "" : std::string(target.data(), static_cast<std::size_t>(length));
}

std::string link_target_of(int descriptor) {
    return link_target("/proc/self/fd/" + std::to_string(descriptor));
}

// The path of the folder, with links and ".." resolved by the kernel.
std::string real_folder(int start, const std::string& path) {
    if (path.empty())
        return start == AT_FDCWD ? link_target("/proc/self/cwd") : link_target_of(start);
    const int folder = openat(start, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return "";
    std::string found = link_target_of(folder);
    close(folder);
    return found;
}

std::vector<std::string_view> components(std::string_view path) {
    std::vector<std::string_view> found;
    while (!path.empty()) {
        const std::string_view part = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(part.size() + 1, path.size()));
        if (!part.empty() && part != ".") found.push_back(part);
    }
    return found;
}

bool is_own_thread(std::string_view number) {
    const std::string folder = "/proc/self/task/" + std::string(number);
    return access(folder.c_str(), F_OK) == 0;
}

// True for /proc/self, /proc/thread-self and /proc/PID, and for task/TID below each of them.
bool is_own_folder(std::span<const std::string_view> path) {
    if (path.size() == 4 && path[2] == "task" && is_own_thread(path[3])) path = path.first(2);
    if (path.size() != 2 || path[0] != "proc") return false;
    return path[1] == "self" || path[1] == "thread-self" || path[1] == std::to_string(getpid()) ||
           path[1] == std::to_string(gettid());
}

// A call's arguments for a path: the indices of the path and, if there is one, of the folder.
struct PathArgument {
    unsigned path = 0;
    std::optional<unsigned> folder;
};

PathArgument path_argument(long number) {
    switch (number) {
        case SYS_openat:
        case SYS_openat2:
        case SYS_readlinkat:
        case SYS_newfstatat:
        case SYS_statx:
        case SYS_faccessat:
        case SYS_faccessat2:
            return {1, 0};
        default:
            return {};
    }
}

// The file that the call names. kOther for an unreadable name: the kernel reports the error.
ProcFile named_file(const Call& call) {
    const PathArgument argument = path_argument(call.number);
    const auto path = read_target_text(call.pointer<const char>(argument.path), PATH_MAX);
    if (!path) return ProcFile::kOther;
    return proc_file(
        argument.folder ? static_cast<int>(call.arguments[*argument.folder]) : AT_FDCWD, *path);
}

// Makes the call for the program's executable.
long with_executable(Call call) {
    call.arguments[path_argument(call.number).path] =
        reinterpret_cast<long>(call.process().program.executable.c_str());
    return pass_on(call);
}

// The flags with which a call opens; nullopt if the kernel has to report an error.
std::optional<open_how> how_of(const Call& call) {
    open_how how{};
    const auto flags = [&](long value) {
        how.flags = static_cast<std::uint64_t>(value);
        return how;
    };
    if (call.number == SYS_creat) return flags(O_CREAT | O_WRONLY | O_TRUNC);
    if (call.number == SYS_open) return flags(call.arguments[1]);
    if (call.number == SYS_openat) return flags(call.arguments[2]);
    if (call.unsigned_argument(3) != sizeof how ||
        !read_target(call.unsigned_argument(2), &how, sizeof how))
        return {};
    return how;
}

bool writes(const open_how& how) {
    return !(how.flags & O_PATH) && ((how.flags & O_ACCMODE) != O_RDONLY || how.flags & O_TRUNC);
}

// Opens the file that the call names. If `how` limits how the path is resolved, uses openat2(2).
long open_named(const Call& call, std::uint64_t flags, const open_how& how) {
    const PathArgument argument = path_argument(call.number);
    const long folder = argument.folder ? call.arguments[*argument.folder] : AT_FDCWD;
    const long path = call.arguments[argument.path];
    flags |= O_CLOEXEC | (how.flags & O_NOFOLLOW);
    const open_how limited{.flags = flags, .resolve = how.resolve};
    const long file = how.resolve == 0
                          ? syscall(SYS_openat, folder, path, flags)
                          : syscall(SYS_openat2, folder, path, &limited, sizeof limited);
    return file < 0 ? -errno : file;
}

// True if the call names the program's file. The kernel does not know that this file is being
// executed, because the driver has mapped it like any other file. The caller has checked that the
// path can be read.
bool names_program(const Call& call, const open_how& how) {
    const long file = open_named(call, O_PATH, how);
    if (is_error(file)) return false;
    struct stat status {};
    const LoadedProgram& program = call.process().program;
    const bool found = fstat(static_cast<int>(file), &status) == 0 &&
                       status.st_dev == program.device && status.st_ino == program.inode;
    close(static_cast<int>(file));
    return found;
}

// The answer to a call that would write to the program's file: ETXTBSY, or the kernel's own error
// if the program may not write to the file.
long refuse_to_write(const Call& call, const open_how& how) {
    const long file = open_named(call, O_WRONLY, how);
    if (is_error(file)) return file;
    close(static_cast<int>(file));
    return -ETXTBSY;
}

// /proc/self/exe is a magic link. It fails with each limit on how a path is resolved.
long open_executable(const Call& call, const open_how& how) {
    if (how.flags & O_NOFOLLOW || how.resolve & ~std::uint64_t{RESOLVE_CACHED})
        return pass_on(call);
    return writes(how) ? -ETXTBSY : with_executable(call);
}

bool follows_links(const Call& call) {
    switch (call.number) {
        case SYS_newfstatat:
        case SYS_faccessat2:
            return !(call.arguments[3] & AT_SYMLINK_NOFOLLOW);
        case SYS_statx:
            return !(call.arguments[2] & AT_SYMLINK_NOFOLLOW);
        default:
            return true;
    }
}

}  // namespace

ProcFile proc_file(int folder, const std::string& path) {
    const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
    const auto* file = std::find_if(std::begin(kFiles), std::end(kFiles),
                                    [&](const auto& known) { return known.first == name; });
    if (file == std::end(kFiles)) return ProcFile::kOther;
    // In most cases the path's text is enough.
    const std::string parent = path.substr(0, path.size() - name.size());
    const bool own = (parent.starts_with('/') && is_own_folder(components(parent))) ||
                     is_own_folder(components(real_folder(folder, parent)));
    return own ? file->second : ProcFile::kOther;
}

long do_open(const Call& call) {
    const ProcFile file = named_file(call);
    const std::optional<open_how> how = how_of(call);
    if (!how) return pass_on(call);
    if (file == ProcFile::kExecutable) return open_executable(call, *how);
    if (file != ProcFile::kOther) {
        const long descriptor = pass_on_locked(call);
        if (!is_error(descriptor))
            call.process().shown_files.add(static_cast<int>(descriptor), file);
        return descriptor;
    }
    constexpr std::uint64_t kNew = O_CREAT | O_EXCL;
    const bool may_be_program =
        writes(*how) && (how->flags & kNew) != kNew && !(how->flags & O_DIRECTORY);
    return may_be_program && names_program(call, *how) ? refuse_to_write(call, *how)
                                                       : pass_on(call);
}

long do_truncate(const Call& call) {
    if (named_file(call) == ProcFile::kExecutable) return -ETXTBSY;
    const open_how by_path{};
    return names_program(call, by_path) ? refuse_to_write(call, by_path) : pass_on(call);
}

long do_readlink(const Call& call) {
    if (named_file(call) != ProcFile::kExecutable) return pass_on(call);
    const unsigned buffer = path_argument(call.number).path + 1;
    const auto room = static_cast<int>(call.arguments[buffer + 1]);
    if (room <= 0) return -EINVAL;
    const std::string& path = call.process().program.executable;
    const std::size_t length = std::min(path.size(), static_cast<std::size_t>(room));
    return write_target(call.unsigned_argument(buffer), path.data(), length)
               ? static_cast<long>(length)
               : -EFAULT;
}

long do_look(const Call& call) {
    const bool executable = follows_links(call) && named_file(call) == ProcFile::kExecutable;
    return executable ? with_executable(call) : pass_on(call);
}

}  // namespace assay::native
