// How large the pages of the program's memory can be, for trace_capture_mappings: what its mappings
// and its advice say, without regard to what the kernel does that runs it.
//
// Of hugetlb mappings pages have the size that was asked for. Transparent huge pages can be where
// memory of no file is private, 2 MiB that are aligned as such, all of one kind. Protections do not
// divide a mapping, and neighbours of the same kind are one. For who holds the driver's lock.
#pragma once

#include "framework/driver/native/memory/memory_map.h"
#include "framework/driver/native/memory/own_memory.h"

#include <cstdint>
#include <vector>

namespace assay::native {

enum class PageKind : std::uint8_t {
    kSmall,    // nothing, files, and what processes share: 4 KiB
    kPrivate,  // of no file, and the process's own
    kAdvised,  // the same, with MADV_HUGEPAGE
    kAgainst,  // the same, with MADV_NOHUGEPAGE
    k2M,       // hugetlb
    k1G,
};

// What mmap(2) maps with those flags. `fd`: of the file; -1: it cannot be asked what it is.
PageKind kind_of_mapping(long flags, int fd);

class PageKinds {
  public:
    static constexpr std::uint64_t kUnit = std::uint64_t{2} << 20;

    void set(const Range& range, PageKind kind);
    // madvise(2), for or against huge pages.
    void advise(const Range& range, bool huge);
    // mremap(2): what was `from` is `to` now, longer or shorter. With `keeps`, it is where it was,
    // too.
    void move(const Range& from, const Range& to, bool keeps);

    // What profilers are told: whole units.
    struct Change {
        Range range;
        std::uint64_t operation;  // TRACE_MARKER_PAGES_*
    };
    // What has changed for them since the last call.
    std::vector<Change> take_changes();
    // How many there have been, of all calls.
    std::uint64_t changes() const { return changes_; }
    // Nothing of it has been told to whom it is told from now on.
    void tell_anew();

  private:
    struct Told {
        std::uint64_t operation = 0;  // 0: pages of 4 KiB
        friend bool operator==(const Told&, const Told&) = default;
    };
    std::vector<Change> units_of(const Range& range) const;

    RangeMap<PageKind> kinds_;
    RangeMap<Told> told_;
    std::vector<Range> touched_;  // of kinds_, since changes were taken
    std::uint64_t changes_ = 0;
};

}  // namespace assay::native
