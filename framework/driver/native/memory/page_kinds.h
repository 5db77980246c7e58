// The possible page sizes of the program's memory, for trace_capture_mappings. They follow from the
// program's mappings and advice, not from what the running kernel does.
//
// Pages of a hugetlb mapping have the size that was asked for. Transparent huge pages are possible
// in private memory that belongs to no file, for each aligned 2 MiB of one kind. Protections do not
// divide a mapping, and neighbours of the same kind are one. Callers hold the driver's lock.
#pragma once

#include "framework/driver/native/memory/memory_map.h"
#include "framework/driver/native/memory/own_memory.h"

#include <cstdint>
#include <vector>

namespace assay::native {

enum class PageKind : std::uint8_t {
    kSmall,    // 4 KiB: nothing mapped, files, and memory that processes share
    kPrivate,  // private memory of no file
    kAdvised,  // the same, with MADV_HUGEPAGE
    kAgainst,  // the same, with MADV_NOHUGEPAGE
    k2M,       // hugetlb
    k1G,
};

// The kind of a mapping with these flags of mmap(2). `fd`: the file; -1 if it must not be queried.
PageKind kind_of_mapping(long flags, int fd);

class PageKinds {
  public:
    static constexpr std::uint64_t kUnit = std::uint64_t{2} << 20;

    void set(const Range& range, PageKind kind);
    // madvise(2): `huge` is true for MADV_HUGEPAGE, false for MADV_NOHUGEPAGE.
    void advise(const Range& range, bool huge);
    // mremap(2) from `from` to `to`, perhaps longer or shorter. With `keeps` the old mapping also
    // stays (MREMAP_DONTUNMAP).
    void move(const Range& from, const Range& to, bool keeps);

    // A change for profilers. The range has whole units of kUnit.
    struct Change {
        Range range;
        std::uint64_t operation;  // TRACE_MARKER_PAGES_*
    };
    // Returns the changes since the last call.
    std::vector<Change> take_changes();
    // The number of changes that all calls returned.
    std::uint64_t changes() const { return changes_; }
    // Forgets the reported kinds, so that a new collector gets all of them.
    void tell_anew();

  private:
    struct Told {
        std::uint64_t operation = 0;  // 0: pages of 4 KiB
        friend bool operator==(const Told&, const Told&) = default;
    };
    std::vector<Change> units_of(const Range& range) const;

    RangeMap<PageKind> kinds_;
    RangeMap<Told> told_;
    std::vector<Range> touched_;  // parts of kinds_ since the last take_changes()
    std::uint64_t changes_ = 0;
};

}  // namespace assay::native
