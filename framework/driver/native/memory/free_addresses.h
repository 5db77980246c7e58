// Addresses where nothing is mapped. A new mapping gets the highest free ones, like in the kernel
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
    // `resource`: RLIMIT_AS or RLIMIT_DATA. Empty if the program has not set the limit.
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
    // The highest free address for `bytes` bytes (not 0), a multiple of `alignment` (a power of
    // two). Returns nullopt if no place is free.
    std::optional<std::uint64_t> highest(std::uint64_t bytes, std::uint64_t alignment) const;
    // The lowest free address within a range.
    std::optional<std::uint64_t> lowest(std::uint64_t bytes, const Range& within) const;

  private:
    using Ranges = std::map<std::uint64_t, std::uint64_t>;  // start -> end; ranges do not touch

    void insert(const Range& range);
    Ranges::iterator erase(Ranges::iterator range);
    void move_end(Ranges::iterator range, std::uint64_t end);
    std::set<std::uint64_t>& of_size(const Range& range);

    Ranges ranges_;
    // by_size_[i] has the starts of ranges with at least 2^i and less than 2^(i+1) bytes. Programs
    // leave thousands of small gaps, which a search for a large mapping skips.
    std::array<std::set<std::uint64_t>, 64> by_size_;
};

struct MappedFile {
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t base = 0;  // the address of its first byte

    bool operator==(const MappedFile&) const = default;
};

// Addresses where code of files has been mapped. Counts are kept per address, so no other code may
// be mapped there later. Otherwise, after a dlclose(3), another library would get the old counts.
class CodePlaces {
  public:
    void add(const Range& range, const MappedFile& file);
    bool overlap(const Range& range) const;
    // True if code of another file, or of this file at another base, has been in the range. `file`
    // is nullopt for memory of no file.
    bool are_of_others(const Range& range, const std::optional<MappedFile>& file) const;
    // The next lower range of the same size without code of files, or nullopt.
    std::optional<Range> below(Range range) const;

  private:
    struct Place {
        Range range;
        MappedFile file;
    };
    std::vector<Place> places_;
};

}  // namespace assay::native
