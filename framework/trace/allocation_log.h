// With Spec::objects: what the program has done with memory, of all threads in one order.
//
// An entry is written before anybody can refer to the memory that it is about, and of memory that
// is given back before anybody else can get it. A record of kind TRACE_SITE_ALLOCATION tells where
// in a thread's trace its own entries belong.
#pragma once

#include <cstdint>

namespace assay::trace {

enum class MemoryUse : std::uint32_t {
    kAllocated = 1,  // a block, by an allocation function
    kMoved = 2,      // likewise, in place of the block at `before`, which may be the same
    kFreed = 3,      // the block at `address`
    kMapped = 4,     // memory of no file, by a system call
    kFile = 5,       // part of a file; `before`: a packed FilePlace
    kUnmapped = 6,
    kBreak = 7,          // what lies below the program break, as a whole
    kStack = 8,          // a thread begins, with its stack pointer at `address`
    kThreadPointer = 9,  // of the thread, that is `address` now
    kRemapped = 10,      // mremap(2): what was at `before` is at `address` now
};

struct AllocationEntry {
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t before;
    std::uint64_t time;  // instructions that the process has executed until then
    std::uint32_t thread;
    MemoryUse use;
};
static_assert(sizeof(AllocationEntry) == 40);

// The number of a file, of kMappedFile events, and the page of it that a mapping begins with.
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

// More are not told.
inline constexpr std::uint64_t kMaxAllocations = std::uint64_t{256} * 1024 * 1024;
inline constexpr std::uint64_t kAllocationsBytes = kMaxAllocations * sizeof(AllocationEntry);

// What the value of a TRACE_SITE_ALLOCATION record is, by its `aux`.
enum AllocationMark : std::uint32_t {
    kBegins = 0,  // an allocation function was entered, of whose result the next kHas tells
    kHas = 1,     // how many entries there are, of which the last is the thread's own
    kSees = 2,    // how many entries there are: a system call has returned
};

}  // namespace assay::trace
