// The target's executable mappings, as the driver sees them go by: the loader's, mmap's,
// mprotect's and munmap's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay::native {

struct Region {
    std::uint64_t start = 0, end = 0;
    bool writable = false;
};

class MemoryMap {
  public:
    void add(std::uint64_t start, std::uint64_t end, bool writable);
    // Removes what is executable there; true if there was anything.
    bool remove(std::uint64_t start, std::uint64_t end);
    // The region that contains `pc`, or nullptr.
    const Region* find(std::uint64_t pc) const;
    // The readable bytes from `pc` on; empty if it is not executable.
    std::span<const std::uint8_t> code_at(std::uint64_t pc) const;

  private:
    std::vector<Region> regions_;
    mutable Region last_;
};

}  // namespace assay::native
