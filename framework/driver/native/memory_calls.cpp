// The target's calls that change its memory: mmap(2) and its relatives, and brk(2).
#include "framework/driver/native/syscalls.h"

#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>
#include <cstdio>

namespace assay::native {
namespace {

constexpr std::uint64_t kPage = CodeWatch::kPage;
std::uint64_t page_up(std::uint64_t value) {
    return (value + kPage - 1) & ~(kPage - 1);
}

void forget_executable(Process& process, std::uint64_t start, std::uint64_t end) {
    process.watch.forget(start, end);
    if (!process.memory.remove(start, end)) return;
    process.unmapped(start, end);
    process.code_changed(start, end);
}

void note_executable(const Call& call, const Region& region, int fd, std::uint64_t offset) {
    call.process().memory.add(region);
    if (fd < 0) return;
    std::array<char, 64> link{};
    std::array<char, 4096> path{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link.data(), path.data(), path.size() - 1);
    if (length > 0)
        call.process().mapped(region.start, region.end, offset,
                              std::string(path.data(), static_cast<std::size_t>(length)));
}

// glibc makes the stack executable by that; the driver's mapping of it does not grow by itself.
void take_stack(const Call& call, std::uint64_t& start, std::uint64_t& end) {
    const LoadedProgram& program = call.process().program;
    if (start < program.stack_start || end > program.stack_end) return;
    start = program.stack_start;
    end = program.stack_end;
}

}  // namespace

// The kernel's break belongs to the driver; the target's follows its program.
long do_break(const Call& call) {
    Process& process = call.process();
    const std::uint64_t wanted = call.unsigned_argument(0);
    const std::uint64_t mapped = page_up(process.break_end);
    if (wanted < process.program.break_start) return static_cast<long>(process.break_end);
    if (page_up(wanted) > mapped) {
        void* got =
            mmap(reinterpret_cast<void*>(mapped), page_up(wanted) - mapped, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (got != reinterpret_cast<void*>(mapped)) {
            if (got != MAP_FAILED) munmap(got, page_up(wanted) - mapped);
            return static_cast<long>(process.break_end);
        }
    } else if (page_up(wanted) < mapped) {
        munmap(reinterpret_cast<void*>(page_up(wanted)), mapped - page_up(wanted));
    }
    process.break_end = wanted;
    return static_cast<long>(wanted);
}

long do_map(const Call& call) {
    const long result = pass_on_locked(call);
    if (is_error(result)) return result;
    const auto start = static_cast<std::uint64_t>(result);
    const std::uint64_t end = start + page_up(call.unsigned_argument(1));
    forget_executable(call.process(), start, end);
    if (!(call.arguments[2] & PROT_EXEC)) return result;
    const bool anonymous = call.arguments[3] & MAP_ANONYMOUS;
    const bool writable = call.arguments[2] & PROT_WRITE;
    const bool shared = !anonymous && (call.arguments[3] & MAP_TYPE) != MAP_PRIVATE;
    note_executable(call,
                    {.start = start,
                     .end = end,
                     .writable = writable,
                     .changeable = writable || anonymous || shared,
                     .shared = shared},
                    anonymous ? -1 : static_cast<int>(call.arguments[4]),
                    call.unsigned_argument(5));
    return result;
}

long do_unmap(const Call& call) {
    const long result = pass_on_locked(call);
    if (!is_error(result))
        forget_executable(call.process(), call.unsigned_argument(0),
                          call.unsigned_argument(0) + page_up(call.unsigned_argument(1)));
    return result;
}

// Code that cannot be executed for a while stays known: programs that generate code go to and fro
// between executable and writable memory.
long do_protect(const Call& call) {
    Process& process = call.process();
    std::uint64_t start = call.unsigned_argument(0);
    std::uint64_t end = start + page_up(call.unsigned_argument(1));
    const long wanted = call.arguments[2];
    const bool executable = wanted & PROT_EXEC, writable = wanted & PROT_WRITE;
    const bool known = process.memory.overlaps(start, end);
    if (!known && !executable) return pass_on_locked(call);
    if (wanted & PROT_GROWSDOWN) take_stack(call, start, end);
    if (start % kPage != 0 || end < start) return -EINVAL;
    constexpr int kProtections = PROT_READ | PROT_WRITE | PROT_EXEC;
    const long result =
        process.watch.protect(start, end, static_cast<int>(wanted) & kProtections, process.cache);
    if (result != 0) return result;
    const Region* before = process.memory.find(start);
    process.memory.add({.start = start,
                        .end = end,
                        .executable = executable,
                        .writable = writable,
                        .changeable = true,
                        .shared = before != nullptr && before->shared});
    if (executable)
        process.cache.resume(start, end);
    else
        process.cache.suspend(start, end);
    return 0;
}

long do_advise(const Call& call) {
    const long result = pass_on_locked(call);
    const long advice = call.arguments[2];
    const bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
    const std::uint64_t start = call.unsigned_argument(0);
    const std::uint64_t end = start + page_up(call.unsigned_argument(1));
    if (!is_error(result) && drops && call.process().memory.overlaps(start, end))
        call.process().code_changed(start, end);
    return result;
}

long do_attach(const Call& call) {
    const long result = pass_on_locked(call);
    shmid_ds state{};
    if (is_error(result) || !(call.arguments[2] & SHM_EXEC) ||
        shmctl(static_cast<int>(call.arguments[0]), IPC_STAT, &state) != 0)
        return result;
    const auto start = static_cast<std::uint64_t>(result);
    const std::uint64_t end = start + page_up(state.shm_segsz);
    forget_executable(call.process(), start, end);
    call.process().memory.add({.start = start,
                               .end = end,
                               .writable = !(call.arguments[2] & SHM_RDONLY),
                               .changeable = true,
                               .shared = true});
    return result;
}

long do_detach(const Call& call) {
    const long result = pass_on_locked(call);
    const Region* known = call.process().memory.find(call.unsigned_argument(0));
    if (!is_error(result) && known != nullptr)
        forget_executable(call.process(), known->start, known->end);
    return result;
}

long do_remap(const Call& call) {
    const std::uint64_t from = call.unsigned_argument(0);
    const Region* known = call.process().memory.find(from);
    const Region before = known != nullptr ? *known : Region{.executable = false};
    const long result = pass_on_locked(call);
    if (is_error(result)) return result;
    const auto to = static_cast<std::uint64_t>(result);
    const std::uint64_t end = to + page_up(call.unsigned_argument(2));
    forget_executable(call.process(), from, from + page_up(call.unsigned_argument(1)));
    forget_executable(call.process(), to, end);
    if (!before.executable) return result;
    Region moved = before;
    moved.start = to;
    moved.end = end;
    call.process().memory.add(moved);
    return result;
}

}  // namespace assay::native
