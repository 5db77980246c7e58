// The program's calls that change its memory: mmap(2) and its relatives, and brk(2).
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/address_space.h"
#include "framework/driver/native/memory/own_memory.h"
#include "framework/driver/native/memory/proc_maps.h"
#include "framework/driver/native/processor/shown_processor.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <vector>

namespace assay::native {
namespace {

std::uint64_t page_up(std::uint64_t value) {
    return (value + kPage - 1) & ~(kPage - 1);
}

void forget_executable(Process& process, std::uint64_t start, std::uint64_t end) {
    process.watch.forget(start, end);
    if (!process.memory.remove(start, end)) return;
    process.code_changed(start, end);
    process.unmapped(start, end);
}

// Adds implied permissions. With READ_IMPLIES_EXEC of personality(2), readable memory is executable
// (the kernel excludes some kinds of files). Executable memory is readable for the driver, which
// reads the program's code, even on processors with execute-only memory.
long with_implied(const Process& process, long protection) {
    if (process.attributes.personality & READ_IMPLIES_EXEC && protection & PROT_READ)
        protection |= PROT_EXEC;
    return protection & PROT_EXEC ? protection | PROT_READ : protection;
}

std::optional<MappedFile> file_at(std::uint64_t start, int fd, std::uint64_t offset) {
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) return std::nullopt;
    return MappedFile{status.st_dev, status.st_ino, start - offset};
}

// Returns "" if the path cannot be found.
std::string path_of(int fd) {
    std::array<char, 64> link{};
    std::array<char, 4096> path{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link.data(), path.data(), path.size() - 1);
    return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

void note_executable(const Call& call, const Region& region, int fd, std::uint64_t offset) {
    call.process().memory.add(region);
    if (fd < 0) return;
    const auto file = region.shared ? std::nullopt : file_at(region.start, fd, offset);
    if (file) call.process().code_places.add({region.start, region.end}, *file);
    const std::string path = path_of(fd);
    if (!path.empty()) call.process().mapped(region.start, region.end, offset, path);
}

void note_objects(const Call& call, const Range& range, int fd) {
    Allocations& allocations = call.thread.allocations;
    if (!allocations.wanted()) return;
    const std::string path = fd < 0 ? std::string() : path_of(fd);
    if (path.empty())
        allocations.map(range.start, range.end);
    else
        allocations.map_file(
            range.start, range.end,
            {path, call.unsigned_argument(5), (call.arguments[2] & PROT_EXEC) != 0});
}

// Applies a change to page_kinds, for trace_capture_mappings.
template <typename Change>
void change_pages(const Call& call, const Change& change) {
    Process& process = call.process();
    if (!process.captures_mappings()) return;
    change(process.page_kinds);
    process.tell_pages(call.thread);
}

void set_pages(const Call& call, const Range& range, PageKind kind) {
    change_pages(call, [&](PageKinds& kinds) { kinds.set(range, kind); });
}

// glibc makes the stack executable with this flag (PROT_GROWSDOWN). The driver's mapping of the
// stack does not grow by itself. False if the range is not in the stack.
bool take_stack(const Call& call, std::uint64_t& start, std::uint64_t& end) {
    const LoadedProgram& program = call.process().program;
    if (start < program.stack_start || end > program.stack_end) return false;
    start = program.stack_start;
    end = program.stack_end;
    return true;
}

// The range of a call. `address` and `length`: the indices of its arguments.
Range range_of(const Call& call, unsigned address, unsigned length) {
    const std::uint64_t start = call.unsigned_argument(address);
    return {start, start + page_up(call.unsigned_argument(length))};
}

// Ends the process, because the program demands addresses that the driver needs.
[[noreturn]] void refuse_to_replace(const Call& call, const char* name, std::uint64_t address) {
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  "%s: the driver's memory is at the address 0x%llx that the program demands; "
                  "use --aslr=yes, which places the driver elsewhere",
                  name, static_cast<unsigned long long>(address));
    call.thread.refuse(text.data());
}

// True if the kernel chooses the address and the mapping may become code. ld.so first maps a whole
// library, without PROT_EXEC.
bool may_become_code(const Call& call) {
    if (call.arguments[0] != 0 || call.arguments[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE))
        return false;
    const bool of_file = !(call.arguments[3] & MAP_ANONYMOUS);
    const bool private_copy = (call.arguments[3] & MAP_TYPE) == MAP_PRIVATE;
    return call.arguments[2] & PROT_EXEC || (of_file && private_copy);
}

// With MAP_HUGETLB: the size of the mapping's pages. The flags can contain its logarithm (mmap(2)).
std::uint64_t alignment_of(long flags) {
    constexpr int kShift = 26, kMask = 0x3f, kDefault = 21;
    if (!(flags & MAP_HUGETLB)) return kPage;
    const long logarithm = flags >> kShift & kMask;
    return std::uint64_t{1} << (logarithm != 0 ? logarithm : kDefault);
}

// mmap(2) at any address: tries the address that the program prefers, then addresses that the
// driver chooses. Returns -EEXIST if no place is free.
long map_in_arena(const Call& call) {
    const long flags = call.arguments[3];
    const std::uint64_t bytes = page_up(call.unsigned_argument(1));
    if (bytes == 0 || !chooses_addresses()) return -EEXIST;
    Call placed = call;
    // A filter of the program may forbid this flag. Without the flag, the kernel may choose.
    if (!call.process().filters_calls) placed.arguments[3] |= MAP_FIXED_NOREPLACE;
    const auto map = [&](std::uint64_t address) {
        placed.arguments[0] = static_cast<long>(address);
        return pass_on_locked(placed);
    };
    // The kernel raises addresses below vm.mmap_min_addr (mm/mmap.c, round_hint_to_min()).
    constexpr std::uint64_t kLowest = 16 * kPage;
    if (const std::uint64_t wanted = call.unsigned_argument(0) & ~(kPage - 1); wanted != 0)
        if (const long result = map(std::max(wanted, kLowest)); !is_error(result)) return result;
    const std::uint64_t alignment = alignment_of(flags);
    const auto find = [&](std::uint64_t size) {
        return flags & MAP_32BIT ? free_place_of_32_bits(size) : free_place(size, alignment);
    };
    return map_in_place((bytes + alignment - 1) & ~(alignment - 1), find, map);
}

// mmap(2). The kernel chooses the address if the driver's choice fails, for example for mappings of
// some devices or wrong arguments.
long map_somewhere(const Call& call) {
    const long flags = call.arguments[3];
    long result = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) ? -EEXIST : map_in_arena(call);
    if (is_error(result)) result = pass_on_locked(call);
    if (is_error(result)) return result;
    // A mapping that grows down keeps this distance to the next one (mm/mmap.c, stack_guard_gap).
    const std::uint64_t gap = flags & MAP_GROWSDOWN ? 256 * kPage : 0;
    const auto start = static_cast<std::uint64_t>(result);
    note_mapped({start - gap, start + page_up(call.unsigned_argument(1))});
    return result;
}

void unmap(const Range& range) {
    munmap(reinterpret_cast<void*>(range.start), range.end - range.start);
    note_unmapped(range);
}

// mmap(2). Memory that may become code is not placed where other code was, unless the program
// itself demands the address.
long map_apart(const Call& call) {
    long result = map_somewhere(call);
    if (!may_become_code(call)) return result;
    const CodePlaces& places = call.process().code_places;
    const int fd = call.arguments[3] & MAP_ANONYMOUS ? -1 : static_cast<int>(call.arguments[4]);
    const auto range = [&] {
        const auto start = static_cast<std::uint64_t>(result);
        return Range{start, start + page_up(call.unsigned_argument(1))};
    };
    const auto is_others = [&] {
        return places.overlap(range()) &&
               places.are_of_others(range(), file_at(range().start, fd, call.unsigned_argument(5)));
    };
    // If something is mapped at the address in the hint, the kernel chooses another one.
    constexpr std::size_t kMostPlaces = 64;
    std::vector<Range> refused;
    while (!is_error(result) && refused.size() < kMostPlaces && is_others()) {
        refused.push_back(range());
        const std::optional<Range> place = places.below(range());
        Call again = call;
        again.arguments[0] = place ? static_cast<long>(place->start) : 0;
        result = map_somewhere(again);
    }
    for (const Range& place : refused) unmap(place);
    return is_error(result) && !refused.empty() ? map_somewhere(call) : result;
}

// The kernel moves only memory with the same permissions throughout. Restores the program's
// permissions on pages that the driver has protected because of translated code.
void end_protection(Process& process, const Region& region, std::uint64_t start,
                    std::uint64_t end) {
    if (!region.writable || region.shared || start % kPage != 0) return;
    process.watch.forget(start, end);
    const int protection = PROT_READ | PROT_WRITE | (region.executable ? PROT_EXEC : 0);
    mprotect(reinterpret_cast<void*>(start), end - start, protection);
    process.code_changed(start, end);
}

// The answer for the driver's memory: makes the call for an unmapped address, so that the kernel
// checks the other arguments and then fails.
long of_no_memory(Call call) {
    constexpr long kAboveAll = 0x7ffffffff000;  // TASK_SIZE_MAX with four levels of page tables
    call.arguments[0] = kAboveAll;
    call.arguments[1] = kPage;
    return pass_on_locked(call);
}

}  // namespace

// brk(2). The kernel's break belongs to the driver; the program's break follows its data.
long do_break(const Call& call) {
    Process& process = call.process();
    const std::uint64_t wanted = call.unsigned_argument(0);
    const std::uint64_t mapped = page_up(process.break_end);
    if (wanted < process.program.break_start || page_up(wanted) < wanted)
        return static_cast<long>(process.break_end);
    if (page_up(wanted) > mapped) {
        void* got =
            mmap(reinterpret_cast<void*>(mapped), page_up(wanted) - mapped, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (got != reinterpret_cast<void*>(mapped)) {
            if (got != MAP_FAILED) munmap(got, page_up(wanted) - mapped);
            return static_cast<long>(process.break_end);
        }
        note_mapped({mapped, page_up(wanted)});
        process.shared_memory.note({mapped, page_up(wanted)}, false);
        set_pages(call, {mapped, page_up(wanted)}, PageKind::kPrivate);
    } else if (page_up(wanted) < mapped) {
        unmap({page_up(wanted), mapped});
        forget_executable(process, page_up(wanted), mapped);
        set_pages(call, {page_up(wanted), mapped}, PageKind::kSmall);
    }
    process.break_end = wanted;
    call.thread.allocations.set_break(process.program.break_start, page_up(wanted));
    return static_cast<long>(wanted);
}

long do_map(const Call& made) {
    Call call = made;
    const Range wanted = range_of(call, 0, 1);
    const bool replaces = call.arguments[3] & MAP_FIXED;
    if (replaces && is_own_memory(wanted)) refuse_to_replace(call, "mmap(MAP_FIXED)", wanted.start);
    call.arguments[2] = with_implied(call.process(), call.arguments[2]);
    const long result = map_apart(call);
    if (is_error(result)) return result;
    const auto start = static_cast<std::uint64_t>(result);
    const std::uint64_t end = start + page_up(call.unsigned_argument(1));
    forget_executable(call.process(), start, end);
    const bool anonymous = call.arguments[3] & MAP_ANONYMOUS;
    const bool shared = (call.arguments[3] & MAP_TYPE) != MAP_PRIVATE;
    call.process().shared_memory.note({start, end}, shared);
    note_objects(call, {start, end}, anonymous ? -1 : static_cast<int>(call.arguments[4]));
    change_pages(call, [&](PageKinds& kinds) {
        // A seccomp filter of the program may forbid fstatfs(2).
        const bool asks = !call.process().filters_calls;
        kinds.set({start, end}, kind_of_mapping(call.arguments[3],
                                                asks ? static_cast<int>(call.arguments[4]) : -1));
    });
    if (!(call.arguments[2] & PROT_EXEC)) return result;
    const bool writable = call.arguments[2] & PROT_WRITE;
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

// Skips the driver's memory, where the program has no mappings. Starts with the highest part: the
// kernel then rejects a range that ends above all addresses before anything is unmapped.
long do_unmap(const Call& call) {
    const Range whole = range_of(call, 0, 1);
    if (whole.start % kPage != 0) return -EINVAL;
    std::vector<Range> parts = without_own_memory(whole);
    std::reverse(parts.begin(), parts.end());
    long result = 0;
    for (const Range& part : parts) {
        Call passed = call;
        passed.arguments[0] = static_cast<long>(part.start);
        passed.arguments[1] = static_cast<long>(part.end - part.start);
        result = pass_on_locked(passed);
        if (is_error(result)) break;
        note_unmapped(part);
        call.thread.allocations.unmap(part.start, part.end);
        forget_executable(call.process(), part.start, part.end);
        set_pages(call, part, PageKind::kSmall);
    }
    return result;
}

namespace {

// Code that loses PROT_EXEC stays registered, because programs that generate code switch often
// between executable and writable memory.
long protect(Process& process, std::uint64_t start, std::uint64_t end, long protection) {
    constexpr int kProtections = PROT_READ | PROT_WRITE | PROT_EXEC;
    const long result = process.watch.protect(
        start, end, static_cast<int>(protection) & kProtections, process.cache);
    if (result != 0) return result;
    const bool executable = protection & PROT_EXEC;
    const Region* before = process.memory.find(start);
    process.memory.add({.start = start,
                        .end = end,
                        .executable = executable,
                        .writable = (protection & PROT_WRITE) != 0,
                        .changeable = true,
                        .shared = before != nullptr && before->shared});
    if (executable)
        process.cache.resume(start, end);
    else
        process.cache.suspend(start, end);
    return 0;
}

// Like the kernel, changes one mapping after the other, up to the first one that it cannot change.
void protect_as_far_as_possible(Process& process, const Range& range, long protection) {
    std::uint64_t start = range.start;
    for (const Mapping& mapping : own_mappings()) {
        if (mapping.end <= start) continue;
        if (mapping.start > start || start >= range.end) return;
        const std::uint64_t end = std::min(mapping.end, range.end);
        if (protect(process, start, end, protection) != 0) return;
        start = end;
    }
}

std::uint64_t start_of_mapping(std::uint64_t address) {
    for (const Mapping& mapping : own_mappings())
        if (mapping.start <= address && address < mapping.end) return mapping.start;
    return address;
}

}  // namespace

long do_protect(const Call& call) {
    Process& process = call.process();
    std::uint64_t start = call.unsigned_argument(0);
    std::uint64_t end = start + page_up(call.unsigned_argument(1));
    if (end <= start) return pass_on_locked(call);  // the length is 0 or too large
    if (is_own_memory({start, end})) return of_no_memory(call);
    constexpr long kSem = 8;  // PROT_SEM of the kernel
    constexpr long kKnown =
        PROT_READ | PROT_WRITE | PROT_EXEC | kSem | PROT_GROWSDOWN | PROT_GROWSUP;
    const long wanted = with_implied(process, call.arguments[2]);
    const bool known = process.memory.overlaps(start, end);
    if ((!known && !(wanted & PROT_EXEC)) || wanted & ~kKnown || wanted & PROT_GROWSUP)
        return pass_on_locked(call);
    if (start % kPage != 0) return -EINVAL;
    if (wanted & PROT_GROWSDOWN && !take_stack(call, start, end)) {
        const long result = pass_on_locked(call);
        if (result != 0) return result;
        start = start_of_mapping(start);
    }
    const long result = protect(process, start, end, wanted);
    if (result != 0) protect_as_far_as_possible(process, {start, end}, wanted);
    return result;
}

// The kernel checks the arguments, and fails on a processor without protection keys. If only the
// shown processor has no keys, the driver frees the new key and returns ENOSPC, as pkeys(7) says.
long do_allocate_key(const Call& call) {
    const long key = pass_on(call);
    if (is_error(key) || shown_processor().has_protection_keys()) return key;
    syscall(SYS_pkey_free, key);
    return -ENOSPC;
}

long do_protect_by_key(const Call& call) {
    constexpr int kNoKey = -1;
    if (!shown_processor().has_protection_keys() && static_cast<int>(call.arguments[3]) != kNoKey)
        return -EINVAL;
    return do_protect(call);
}

long do_look_at_memory(const Call& call) {
    return is_own_memory(range_of(call, 0, 1)) ? of_no_memory(call) : pass_on(call);
}

// Adds MCL_ONFAULT, because otherwise the driver's reserved memory would be allocated at once.
long do_lock_all(const Call& call) {
    Call passed = call;
    passed.arguments[0] |= MCL_ONFAULT;
    return pass_on(passed);
}

long do_advise(const Call& call) {
    if (is_own_memory(range_of(call, 0, 1))) return of_no_memory(call);
    const long result = pass_on_locked(call);
    const long advice = call.arguments[2];
    // MADV_DONTNEED_LOCKED and MADV_GUARD_INSTALL: Linux 5.18 and 6.13.
    constexpr long kDropLocked = 24, kGuard = 102;
    const bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
                       advice == kDropLocked || advice == kGuard;
    const std::uint64_t start = call.unsigned_argument(0);
    const std::uint64_t end = start + page_up(call.unsigned_argument(1));
    if (!is_error(result) && drops && call.process().memory.overlaps(start, end))
        call.process().code_changed(start, end);
    // Records even refused advice, because the running kernel may not know huge pages.
    const bool of_pages = advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE;
    if (of_pages && start % kPage == 0 && start < end)
        change_pages(call, [&](PageKinds& kinds) {
            kinds.advise({start, end}, advice == MADV_HUGEPAGE);
        });
    return result;
}

namespace {

// shmat(2). The kernel returns EINVAL if something is mapped at the address.
long attach_somewhere(const Call& call, std::uint64_t bytes) {
    if (call.arguments[1] != 0 || !chooses_addresses()) return pass_on_locked(call);
    Call placed = call;
    const auto attach = [&](std::uint64_t address) {
        placed.arguments[1] = static_cast<long>(address);
        const long result = pass_on_locked(placed);
        return result == -EINVAL ? -EEXIST : result;
    };
    const auto find = [](std::uint64_t size) { return free_place(size, kPage); };
    const long result = map_in_place(bytes, find, attach);
    return is_error(result) ? pass_on_locked(call) : result;
}

}  // namespace

long do_attach(const Call& call) {
    shmid_ds state{};
    const std::uint64_t wanted = call.unsigned_argument(1);
    if (call.arguments[2] & SHM_REMAP &&
        shmctl(static_cast<int>(call.arguments[0]), IPC_STAT, &state) == 0 &&
        is_own_memory({wanted, wanted + page_up(state.shm_segsz)}))
        refuse_to_replace(call, "shmat(SHM_REMAP)", wanted);
    const bool of_interest = call.arguments[2] & (SHM_EXEC | SHM_REMAP);
    // A seccomp filter of the program may forbid shmctl(2).
    if ((call.process().filters_calls && !of_interest) ||
        shmctl(static_cast<int>(call.arguments[0]), IPC_STAT, &state) != 0)
        return pass_on_locked(call);
    const std::uint64_t bytes = page_up(state.shm_segsz);
    const long result = attach_somewhere(call, bytes);
    if (is_error(result)) return result;
    const auto start = static_cast<std::uint64_t>(result);
    const std::uint64_t end = start + bytes;
    note_mapped({start, end});
    call.process().attached[start] = end;
    call.process().shared_memory.note({start, end}, true);
    call.thread.allocations.map(start, end);
    forget_executable(call.process(), start, end);
    set_pages(call, {start, end}, PageKind::kSmall);
    if (!(call.arguments[2] & SHM_EXEC)) return result;
    call.process().memory.add({.start = start,
                               .end = end,
                               .writable = !(call.arguments[2] & SHM_RDONLY),
                               .changeable = true,
                               .shared = true});
    return result;
}

long do_detach(const Call& call) {
    const long result = pass_on_locked(call);
    if (is_error(result)) return result;
    std::map<std::uint64_t, std::uint64_t>& attached = call.process().attached;
    const auto found = attached.find(call.unsigned_argument(0));
    if (found == attached.end()) return result;
    const Range range{found->first, found->second};
    attached.erase(found);
    note_unmapped(range);
    call.thread.allocations.unmap(range.start, range.end);
    forget_executable(call.process(), range.start, range.end);
    return result;
}

namespace {

// True if mremap(2) moves the memory to an address that the kernel chooses.
bool is_moved_anywhere(const Call& call) {
    const Range before = range_of(call, 0, 1);
    const std::uint64_t more = page_up(call.unsigned_argument(2));
    const long flags = call.arguments[3];
    if (!chooses_addresses() || !(flags & MREMAP_MAYMOVE) || flags & MREMAP_FIXED) return false;
    // A seccomp filter of the program may forbid the call that reserves an address.
    if (call.process().filters_calls) return false;
    // The kernel takes the last argument as a hint here (mm/mremap.c).
    if (flags & MREMAP_DONTUNMAP) return call.arguments[4] == 0;
    return more > before.end - before.start;
}

// mremap(2): grows the mapping in place, or moves it to an address that the driver chooses.
long move_somewhere(const Call& call) {
    if (!is_moved_anywhere(call)) return pass_on_locked(call);
    Call placed = call;
    placed.arguments[3] &= ~MREMAP_MAYMOVE;
    if (!(call.arguments[3] & MREMAP_DONTUNMAP) && call.arguments[1] != 0)
        if (const long result = pass_on_locked(placed); !is_error(result)) return result;
    // MREMAP_FIXED replaces existing mappings, so the driver reserves the range first.
    const std::uint64_t bytes = page_up(call.unsigned_argument(2));
    unsigned char* const place = reserve_in_arena(bytes);
    if (place == nullptr) return pass_on_locked(call);
    placed.arguments[3] = call.arguments[3] | MREMAP_FIXED;
    placed.arguments[4] = reinterpret_cast<long>(place);
    const long result = pass_on_locked(placed);
    if (!is_error(result)) return result;
    const auto start = reinterpret_cast<std::uint64_t>(place);
    unmap({start, start + bytes});
    return pass_on_locked(call);
}

}  // namespace

long do_remap(const Call& call) {
    const std::uint64_t from = call.unsigned_argument(0);
    if (is_own_memory(range_of(call, 0, 1))) return -EFAULT;
    const std::uint64_t place = call.unsigned_argument(4);
    if (call.arguments[3] & MREMAP_FIXED &&
        is_own_memory({place, place + page_up(call.unsigned_argument(2))}))
        refuse_to_replace(call, "mremap(MREMAP_FIXED)", place);
    const Region* known = call.process().memory.find(from);
    const Region before = known != nullptr ? *known : Region{.executable = false};
    if (known != nullptr)
        end_protection(call.process(), before, from,
                       std::min(range_of(call, 0, 1).end, before.end));
    const long result = move_somewhere(call);
    if (is_error(result)) return result;
    const auto to = static_cast<std::uint64_t>(result);
    const std::uint64_t end = to + page_up(call.unsigned_argument(2));
    if (!(call.arguments[3] & MREMAP_DONTUNMAP)) note_unmapped(range_of(call, 0, 1));
    note_mapped({to, end});
    SharedMemory& shared_memory = call.process().shared_memory;
    shared_memory.note({to, end}, shared_memory.has(from));
    call.thread.allocations.remap(from, to, end);
    change_pages(call, [&](PageKinds& kinds) {
        kinds.move(range_of(call, 0, 1), {to, end}, call.arguments[3] & MREMAP_DONTUNMAP);
    });
    forget_executable(call.process(), from, from + page_up(call.unsigned_argument(1)));
    forget_executable(call.process(), to, end);
    if (!before.executable) return result;
    Region moved = before;
    moved.start = to;
    moved.end = end;
    call.process().memory.add(moved);
    if (call.arguments[3] & MREMAP_DONTUNMAP) {
        Region left = before;
        left.start = from;
        left.end = range_of(call, 0, 1).end;
        call.process().memory.add(left);
    }
    return result;
}

}  // namespace assay::native
