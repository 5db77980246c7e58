// Which bytes of the lines that an instruction fetches are used, and how many of each line: summed
// up over the lines, in 64 parts of a line.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace used_bytes {

inline constexpr std::uint32_t kParts = 64;

// What was used of a line while it was in the cache.
struct Use {
    std::uint32_t bytes;
    std::uint64_t parts;  // a bit for each; of lines of less than 64 bytes, a part is a byte
};

struct Pattern {
    std::uint64_t lines = 0;
    std::array<std::uint64_t, kParts> in_part{};         // lines in which that part was used
    std::array<std::uint64_t, kParts + 1> part_count{};  // lines of which so many parts were used

    void add(std::uint64_t parts) {
        ++lines;
        ++part_count[static_cast<std::size_t>(std::popcount(parts))];
        if (parts == ~std::uint64_t{0}) return;  // the usual case: see lines_with()
        for (; parts != 0; parts &= parts - 1)
            ++in_part[static_cast<std::size_t>(std::countr_zero(parts))];
    }
    std::uint64_t lines_with(std::size_t part) const { return in_part[part] + part_count[kParts]; }
};

}  // namespace used_bytes
