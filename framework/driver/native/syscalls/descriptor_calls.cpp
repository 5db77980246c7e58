// The program's calls on descriptors. To the program, the driver's descriptors are closed. Data
// that are read into code change the code.
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/own_memory.h"
#include "framework/driver/native/memory/proc_maps.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace assay::native {
namespace {

// True for a folder of /proc that lists this process's descriptors.
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

// Removes the driver's descriptors from the entries of getdents64(2), each a `linux_dirent64`.
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
    const unsigned argument = row_of(call.number).descriptor;
    const bool without = call.number == SYS_mmap && (call.arguments[3] & MAP_ANONYMOUS);
    if (argument != kNoDescriptor && !without && is_own_descriptor(call.arguments[argument]))
        return true;
    // dup2(2) and dup3(2) must not replace a descriptor of the driver either.
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
        if (kept.empty()) continue;  // an empty result would mean the end
        if (!write_target(call.unsigned_argument(1), kept.data(), kept.size())) return -EFAULT;
        return static_cast<long>(kept.size());
    }
}

// Reads of files of /proc that describe the process, and queries about them; see ShownFiles.

namespace {

ProgramRanges ranges_of(const Process& process) {
    return {.heap_start = process.program.break_start,
            .heap_end = process.break_end,
            .stack_end = process.program.stack_end};
}

std::string contents(const Process& process, ProcFile file) {
    switch (file) {
        case ProcFile::kMaps:
            return maps_of_program(read_file("/proc/self/maps"), process.memory,
                                   ranges_of(process));
        case ProcFile::kSmaps:
            return maps_of_program(read_file("/proc/self/smaps"), process.memory,
                                   ranges_of(process));
        case ProcFile::kEnvironment:
            return process.program.environment;
        case ProcFile::kAuxiliaryVector: {
            const auto& words = process.program.auxiliary_vector;
            return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]};
        }
        default:
            return {};
    }
}

// The buffers of a call; nullopt if the kernel has to report an error.
std::optional<std::vector<iovec>> buffers(const Call& call) {
    if (call.number == SYS_read || call.number == SYS_pread64)
        return std::vector{iovec{call.pointer<void>(1), call.unsigned_argument(2)}};
    if (call.unsigned_argument(2) > IOV_MAX) return {};
    std::vector<iovec> found(call.unsigned_argument(2));
    if (!read_target(call.unsigned_argument(1), found.data(), found.size() * sizeof found[0]))
        return {};
    return found;
}

// The offset to read at; nullopt: the descriptor's position.
std::optional<off_t> place(const Call& call) {
    const bool has_place = call.number == SYS_pread64 || call.number == SYS_preadv ||
                           (call.number == SYS_preadv2 && call.arguments[3] != -1);
    return has_place ? std::optional(call.arguments[3]) : std::nullopt;
}

// Returns the result of read(2).
long copy_out(const std::string& text, std::size_t from, const std::vector<iovec>& to) {
    std::size_t copied = 0;
    for (const iovec& part : to) {
        const std::size_t bytes = std::min(part.iov_len, text.size() - from - copied);
        if (!write_target(reinterpret_cast<std::uint64_t>(part.iov_base),
                          text.data() + from + copied, bytes))
            return copied != 0 ? static_cast<long>(copied) : -EFAULT;
        copied += bytes;
    }
    return static_cast<long>(copied);
}

long read_shown(const Call& call, ShownFile& file, const std::vector<iovec>& to) {
    const int descriptor = static_cast<int>(call.arguments[0]);
    const std::optional<off_t> given = place(call);
    const off_t at = given ? *given : lseek(descriptor, 0, SEEK_CUR);
    if (at < 0) return -EINVAL;
    if (at == 0 || file.text.empty()) file.text = contents(call.process(), file.file);
    const std::size_t from = std::min(static_cast<std::size_t>(at), file.text.size());
    const long got = copy_out(file.text, from, to);
    if (!given && got > 0) lseek(descriptor, at + got, SEEK_SET);
    if (got == 0) file.text.clear();
    return got;
}

// `access`: O_RDONLY or O_WRONLY.
bool is_open_for(long descriptor, int access) {
    const int flags = fcntl(static_cast<int>(descriptor), F_GETFL);
    const int mode = flags & O_ACCMODE;
    return flags >= 0 && !(flags & O_PATH) && (mode == access || mode == O_RDWR);
}

// Answers sendfile(2) and splice(2), which files of /proc do not support since Linux 5.10. Checks
// the descriptors first, as the kernel does.
long refuse_to_move(const Call& call) {
    const bool splices = call.number == SYS_splice;
    if (splices && call.arguments[4] == 0) return 0;
    const long from = call.arguments[splices ? 0 : 1], to = call.arguments[splices ? 2 : 0];
    return is_open_for(from, O_RDONLY) && is_open_for(to, O_WRONLY) ? -EINVAL : -EBADF;
}

// --- PROCMAP_QUERY

// struct procmap_query of linux/fs.h, since Linux 6.11.
struct MapQuery {
    std::uint64_t size, query_flags, query_addr;
    std::uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    std::uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
    std::uint64_t vma_name_addr, build_id_addr;
};
constexpr unsigned long kMapQuery = _IOWR('f', 17, MapQuery);
constexpr std::uint64_t kReadable = 1, kWritable = 2, kExecutable = 4, kShared = 8;
constexpr std::uint64_t kPermissions = kReadable | kWritable | kExecutable | kShared;
constexpr std::uint64_t kCoveringOrNext = 0x10;

// The program's first part of the mapping `found`, from the address on.
std::optional<Mapping> part_of_program(const Process& process, const MapQuery& found,
                                       std::uint64_t address, const char* name) {
    Mapping mapping;
    mapping.start = found.vma_start;
    mapping.end = found.vma_end;
    mapping.permissions = {
        found.vma_flags & kReadable ? 'r' : '-', found.vma_flags & kWritable ? 'w' : '-',
        found.vma_flags & kExecutable ? 'x' : '-', found.vma_flags & kShared ? 's' : 'p'};
    mapping.name = found.vma_name_size != 0 ? name : "";
    for (const Mapping& part : parts_of_program(mapping, process.memory, ranges_of(process)))
        if (part.end > address) return part;
    return {};
}

// Writes the answer into the program's `query`. `found`: the kernel's answer.
long answer(const Call& call, MapQuery query, const MapQuery& found, const Mapping& mapping) {
    const std::uint64_t name = query.vma_name_addr, room = query.vma_name_size;
    const std::uint64_t flags = query.query_flags, address = query.query_addr;
    const std::size_t length = mapping.name.empty() ? 0 : mapping.name.size() + 1;
    query = found;
    query.query_flags = flags;
    query.query_addr = address;
    query.vma_start = mapping.start;
    query.vma_end = mapping.end;
    if (found.inode != 0) query.vma_offset += mapping.start - found.vma_start;
    if (mapping.permissions[1] == 'w') query.vma_flags |= kWritable;
    if (mapping.permissions[2] == 'x') query.vma_flags |= kExecutable;
    query.vma_name_addr = name;
    query.vma_name_size = room != 0 ? static_cast<std::uint32_t>(length) : 0;
    if (room != 0 && length > room) return -ENAMETOOLONG;
    if (room != 0 && !write_target(name, mapping.name.c_str(), length)) return -EFAULT;
    return write_target(call.unsigned_argument(2), &query, sizeof query) ? 0 : -EFAULT;
}

// Follows query_matching_vma() of fs/proc/task_mmu.c. Asks the kernel for the next mapping,
// whatever its permissions, because the query is about the program's permissions.
long query_map(const Call& call) {
    MapQuery query{};
    if (!read_target(call.unsigned_argument(2), &query, sizeof query) ||
        query.size != sizeof query || (query.vma_name_size != 0) != (query.vma_name_addr != 0))
        return pass_on(call);
    const bool or_next = query.query_flags & kCoveringOrNext;
    const std::uint64_t wanted = query.query_flags & kPermissions;
    std::array<char, PATH_MAX> name{};
    for (std::uint64_t address = query.query_addr;;) {
        MapQuery found = query;
        found.query_flags = (query.query_flags & ~kPermissions) | kCoveringOrNext;
        found.query_addr = address;
        found.vma_name_addr = reinterpret_cast<std::uint64_t>(name.data());
        found.vma_name_size = name.size();
        if (ioctl(static_cast<int>(call.arguments[0]), kMapQuery, &found) != 0) return -errno;
        const auto part = part_of_program(call.process(), found, address, name.data());
        if (part && !or_next && part->start > query.query_addr) return -ENOENT;
        if (part) {
            std::uint64_t flags = found.vma_flags;
            if (part->permissions[1] == 'w') flags |= kWritable;
            if (part->permissions[2] == 'x') flags |= kExecutable;
            if ((flags & wanted) == wanted) return answer(call, query, found, *part);
        }
        if (!or_next) return -ENOENT;
        address = part ? part->end : found.vma_end;
    }
}

}  // namespace

long do_read(const Call& call) {
    const bool moves = call.number == SYS_sendfile || call.number == SYS_splice;
    const long source = call.arguments[call.number == SYS_sendfile ? 1 : 0];
    ShownFile* file = call.process().shown_files.find(source);
    if (file == nullptr) return pass_on(call);
    if (moves) return refuse_to_move(call);
    const bool is_readable = is_open_for(source, O_RDONLY);
    const bool has_flags = call.number == SYS_preadv2 && call.arguments[5] != 0;
    const auto to = is_readable && !has_flags ? buffers(call) : std::nullopt;
    return to ? read_shown(call, *file, *to) : pass_on(call);
}

long do_control(const Call& call) {
    const bool queries = (call.unsigned_argument(1) & 0xffffffff) == kMapQuery &&
                         call.process().shown_files.find(call.arguments[0]) != nullptr;
    return queries ? query_map(call) : pass_on(call);
}

}  // namespace assay::native
