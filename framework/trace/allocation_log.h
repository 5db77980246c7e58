// With Spec::objects: how the program uses its memory. The entries of all threads have one order.
//
// The driver writes an entry before another thread can refer to new memory, or can get freed
// memory. A record of kind TRACE_SITE_ALLOCATION says where a thread's own entries belong in its
// trace.
#pragma once

#include <cstdint>

namespace assay::trace {

enum class MemoryUse : std::uint32_t {
    kAllocated = 1,  // a block, by an allocation function
    kMoved = 2,      // a block in place of the one at `before`, which may be the same
    kFreed = 3,      // the block at `address`
    kMapped = 4,     // anonymous memory, by a system call
    kFile = 5,       // part of a file; `before`: a packed FilePlace
    kUnmapped = 6,
    kBreak = 7,          // all memory below the program break
    kStack = 8,          // a thread begins, with its stack pointer at `address`
    kThreadPointer = 9,  // the thread pointer of the thread is now `address`
    kRemapped = 10,      // mremap(2): the memory at `before` is now at `address`
};

struct AllocationEntry {
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t before;
    std::uint64_t time;  // instructions that the process had executed
    std::uint32_t thread;
    MemoryUse use;
};
static_assert(sizeof(AllocationEntry) == 40);

// The number of a file, in the order of kMappedFile events, and where a mapping begins in it.
inline constexpr std::uint32_t kMaxMappedFiles = 1U << 23;
inline constexpr std::uint64_t kFilePage = 4096;
struct FilePlace {
    std::uint32_t file;
    std::uint64_t offset;
    bool executable;
};
inline constexpr std::uint64_t packed(const FilePlace& place) {
    return (place.offset / kFilePage * 2 + (place.executable ? 1 : 0)) * kMaxMappedFiles +
           place.file;
}
inline constexpr FilePlace file_place(std::uint64_t packed) {
    const std::uint64_t above = packed / kMaxMappedFiles;
    return {static_cast<std::uint32_t>(packed % kMaxMappedFiles), above / 2 * kFilePage,
            above % 2 != 0};
}

// The driver writes no further entries.
inline constexpr std::uint64_t kMaxAllocations = std::uint64_t{256} * 1024 * 1024;
inline constexpr std::uint64_t kAllocationsBytes = kMaxAllocations * sizeof(AllocationEntry);

// The `aux` of a TRACE_SITE_ALLOCATION record says what its value is.
enum AllocationMark : std::uint32_t {
    kBegins = 0,  // nothing; an allocation function begins, and the next kHas tells its result
    kHas = 1,     // the number of entries; the last one is the thread's own
    kSees = 2,    // the number of entries when a system call has returned
};

}  // namespace assay::trace
