// A heap that begins with large pages. Page faults would otherwise take a quarter of the time of a
// short run.
#pragma once

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>

namespace assay {

// From now on the heap has large pages, grows by `step` bytes at a time, and keeps freed memory.
// All threads share it, because glibc extends the heaps of other threads by one small page at a
// time. To be called after fork(2): a large page that two processes share turns into small ones.
inline void begin_large_heap(int step) {
    constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20;
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, step);
    mallopt(M_TRIM_THRESHOLD, 2 * step);
    mallopt(M_MMAP_THRESHOLD, 2 * static_cast<int>(kLargePage));
    constexpr std::size_t kMoreThanLeft = kLargePage / 4;
    void* volatile place = std::malloc(kMoreThanLeft);  // volatile: the compiler must keep the call
    const auto begin = reinterpret_cast<std::uintptr_t>(place) + kMoreThanLeft;
    const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
    const std::uintptr_t first = (begin + kLargePage - 1) & ~(kLargePage - 1);
    // The heap is elsewhere if another library provides malloc.
    if (place == nullptr || first >= end || end - first > 2 * static_cast<std::uintptr_t>(step))
        return std::free(place);
    // Before malloc writes to the page: a small page there would prevent the large one.
    madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
    // The memory before the first large page stays unused, because each small page costs a fault.
    place = std::malloc(first - begin);
}  // NOLINT(clang-analyzer-unix.Malloc)

}  // namespace assay
