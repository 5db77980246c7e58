// Where nothing is mapped: of that, the place that the kernel would choose, the highest free one
// (mm/mmap.c, vm_unmapped_area()).
#pragma once

#include "framework/driver/native/memory/own_memory.h"

#include <sys/resource.h>
#include <sys/types.h>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace assay::native {

// Limits of memory that the program has set for itself.

class MemoryLimits {
  public:
    // RLIMIT_AS or RLIMIT_DATA; nothing if the program has not set it.
    std::optional<rlimit>& of(long resource) {
        return resource == RLIMIT_AS ? address_space_ : data_;
    }
    const std::optional<rlimit>& of(long resource) const {
        return resource == RLIMIT_AS ? address_space_ : data_;
    }

  private:
    std::optional<rlimit> address_space_, data_;
};

class FreeAddresses {
  public:
    void add(const Range& range);
    void remove(const Range& range);
    // The highest place of so many bytes, not 0, at a multiple of `alignment`, a power of two.
    // Nothing: there is none.
    std::optional<std::uint64_t> highest(std::uint64_t bytes, std::uint64_t alignment) const;
    // The lowest one within a range.
    std::optional<std::uint64_t> lowest(std::uint64_t bytes, const Range& within) const;

  private:
    using Ranges = std::map<std::uint64_t, std::uint64_t>;  // ends by starts; they do not touch

    void insert(const Range& range);
    Ranges::iterator erase(Ranges::iterator range);
    void move_end(Ranges::iterator range, std::uint64_t end);
    std::set<std::uint64_t>& of_size(const Range& range);

    Ranges ranges_;
    // The starts of those of 2^i bytes and more, but less than 2^(i+1). Programs leave thousands of
    // small gaps, where a large mapping need not be looked for.
    std::array<std::set<std::uint64_t>, 64> by_size_;
};

// Where code of files has been. Counts are kept by address, so that no other code may come there:
// else what one library has executed before dlclose(3) would count for the one opened next.

// A file as it is mapped.
struct MappedFile {
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t base = 0;  // the address of its first byte

    bool operator==(const MappedFile&) const = default;
};

class CodePlaces {
  public:
    void add(const Range& range, const MappedFile& file);
    bool overlap(const Range& range) const;
    // Whether code that is not this file's, mapped so, has been anywhere there. Nothing: no file.
    bool are_of_others(const Range& range, const std::optional<MappedFile>& file) const;
    // The next lower place of that size where no code of files has been. Nothing: there is none.
    std::optional<Range> below(Range range) const;

  private:
    struct Place {
        Range range;
        MappedFile file;
    };
    std::vector<Place> places_;
};

}  // namespace assay::native
