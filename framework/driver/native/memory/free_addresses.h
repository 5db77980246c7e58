// Where nothing is mapped: of that, the place that the kernel would choose, the highest free one
// (mm/mmap.c, vm_unmapped_area()).
#pragma once

#include "framework/driver/native/memory/own_memory.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace assay::native {

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

}  // namespace assay::native
