// The target's executable mappings, as the driver sees them go by: the loader's, mmap's,
// mprotect's and munmap's.
#pragma once

#include <cstdint>
#include <map>
#include <span>

namespace assay::native {

struct Region {
    std::uint64_t start = 0, end = 0;
    bool executable = true;  // or it was, and may have translations still
    bool writable = false;
    // Its contents may be others than when it was translated: it is or was writable, or belongs
    // to no file.
    bool changeable = false;
    bool shared = false;  // other mappings, perhaps writable ones, may show the same memory

    bool is_like(const Region& other) const {
        return executable == other.executable && writable == other.writable &&
               changeable == other.changeable && shared == other.shared;
    }
};

class MemoryMap {
  public:
    // Takes the place of what is known there.
    void add(const Region& region);
    // Removes what is known there; true if there was anything.
    bool remove(std::uint64_t start, std::uint64_t end);
    // The region that contains `pc`, or nullptr.
    const Region* find(std::uint64_t pc) const;
    // The end of the region that contains the address; without one, the start of the next region.
    std::uint64_t end_of_part(std::uint64_t address) const;
    // True if anything is known in [start, end).
    bool overlaps(std::uint64_t start, std::uint64_t end) const;
    // The bytes of the instruction at `pc`, as many as can be read; empty if it is not executable,
    // or if nothing can be read there: the file may have become shorter.
    std::span<const std::uint8_t> code_at(std::uint64_t pc) const;

  private:
    std::map<std::uint64_t, Region> regions_;  // by start
    mutable Region last_;
};

}  // namespace assay::native
