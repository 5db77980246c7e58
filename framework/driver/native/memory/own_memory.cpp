#include "framework/driver/native/memory/own_memory.h"

#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/proc_maps.h"

#include <alloca.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>
#include <utility>

// glibc's variable for the program break that sbrk(3) assumes.
extern "C" void* __curbrk;  // NOLINT(bugprone-reserved-identifier)

namespace assay::native {
namespace {

// start -> end; ranges do not overlap.
using Ranges = std::map<std::uint64_t, std::uint64_t>;

Ranges& own() {
    static Ranges ranges;
    return ranges;
}

// The driver's heap grows in its program break (address_space.cpp).
std::uint64_t& heap_start() {
    static std::uint64_t start = 0;
    return start;
}

// The heap's final end; 0 if it may still grow.
std::uint64_t& last_heap_end() {
    static std::uint64_t end = 0;
    return end;
}

Range heap() {
    if (heap_start() == 0) return {};
    const std::uint64_t last = last_heap_end();
    return {heap_start(), last != 0 ? last : reinterpret_cast<std::uint64_t>(sbrk(0))};
}

bool overlap(const Range& a, const Range& b) {
    return a.start < b.end && b.start < a.end;
}

// [vdso], [vvar], [vvar_vclock], [vsyscall]: a program also has these without the driver.
bool belongs_to_all(const Mapping& mapping) {
    return mapping.name.starts_with("[v");
}

}  // namespace

void grow_own_stack() {
    constexpr std::size_t kEnough = 512 << 10;  // twice as much as other threads have
    rlimit limit{};
    getrlimit(RLIMIT_STACK, &limit);
    const std::size_t bytes = std::min<std::size_t>(kEnough, limit.rlim_cur / 4);
    volatile char* lowest = static_cast<char*>(alloca(bytes));
    *lowest = 0;
}

void begin_own_memory(const std::vector<Mapping>& mappings) {
    for (const Mapping& mapping : mappings) {
        if (belongs_to_all(mapping)) continue;
        if (mapping.name == "[heap]")
            heap_start() = mapping.start;
        else
            add_own_memory({mapping.start, mapping.end});
    }
}

void stop_moving_break() {
    if (last_heap_end() != 0) return;
    constexpr std::size_t kReserve = std::size_t{256} << 20;
    mallopt(M_TRIM_THRESHOLD, INT_MAX);              // keep the reserve
    void* volatile reserve = std::malloc(kReserve);  // volatile: the compiler must not remove this
    std::free(reserve);
    last_heap_end() = reinterpret_cast<std::uint64_t>(sbrk(0));
    // From here on sbrk(3) cannot extend the heap, and fails without a system call.
    __curbrk = reinterpret_cast<void*>(UINTPTR_MAX);
}

void let_break_move() {
    if (last_heap_end() == 0) return;
    __curbrk = reinterpret_cast<void*>(std::exchange(last_heap_end(), 0));
}

void populate(const Range& range) {
    if (last_heap_end() != 0) return;
    const std::uint64_t start = range.start & ~(kPage - 1);
    madvise(reinterpret_cast<void*>(start), range.end - start, MADV_POPULATE_WRITE);
}

void add_own_memory(const Range& range) {
    Range joined = range;
    Ranges& ranges = own();
    // Joins the range with all ranges that touch it.
    auto it = ranges.lower_bound(range.start);
    if (it != ranges.begin() && std::prev(it)->second >= range.start) --it;
    while (it != ranges.end() && it->first <= joined.end) {
        joined.start = std::min(joined.start, it->first);
        joined.end = std::max(joined.end, it->second);
        it = ranges.erase(it);
    }
    ranges.emplace(joined.start, joined.end);
}

bool is_own_memory(const Range& range) {
    if (overlap(range, heap())) return true;
    const auto next = own().lower_bound(range.end);
    return next != own().begin() && std::prev(next)->second > range.start &&
           range.start < range.end;
}

std::vector<Range> without_own_memory(const Range& range) {
    if (!is_own_memory(range)) return {range};
    std::vector<Range> parts;
    std::uint64_t from = range.start;
    const auto leave_out = [&](const Range& taken) {
        if (!overlap(taken, {from, range.end})) return;
        if (from < taken.start) parts.push_back({from, taken.start});
        from = taken.end;
    };
    Ranges ranges = own();
    if (const Range own_heap = heap(); own_heap.start < own_heap.end)
        ranges.emplace(own_heap.start, own_heap.end);
    for (const auto& [start, end] : ranges) leave_out({start, end});
    if (from < range.end) parts.push_back({from, range.end});
    return parts;
}

}  // namespace assay::native
