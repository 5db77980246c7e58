// The words of a line, which true and false sharing are told apart by.
#pragma once

#include <bit>
#include <cstdint>

namespace machine {

class LineWords {
  public:
    explicit LineWords(std::uint32_t line_bytes)
        : shift_(line_bytes > 512 ? std::countr_zero(line_bytes) - 6 : 3) {}

    // The words of 8 bytes of a line that so many bytes from there on touch, as bits; of lines
    // above 512 bytes, which have more than 64, larger ones.
    std::uint64_t of(std::uint64_t first, std::uint64_t bytes) const {
        const std::uint64_t from = first >> shift_, to = (first + bytes - 1) >> shift_;
        return ~std::uint64_t{0} >> (63 - to) & ~std::uint64_t{0} << from;
    }

  private:
    int shift_;  // of a word's bytes
};

}  // namespace machine
