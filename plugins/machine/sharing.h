// What cores have lost to other cores' writes, and which words have been written since: true and
// false sharing (Torrellas, Lam and Hennessy, "False sharing and spatial locality in multiprocessor
// caches", IEEE Transactions on Computers 43, 1994).
#pragma once

#include "plugins/machine/line_map.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace machine {

// The words of a line, by which true and false sharing are told apart.
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

class Sharing {
  public:
    // A core has lost the line.
    void lost(std::uint32_t core, std::uint64_t line);
    // Another core has written these words of it.
    void written(std::uint32_t core, std::uint64_t line, std::uint64_t words);
    // Whether somebody has lost the line and not got it again.
    bool is_watched(std::uint64_t line) { return losses_.find(line) != nullptr; }
    // The core gets the line again, for these words: whether one of them was written meanwhile.
    // Nothing if it has not lost it.
    std::optional<bool> found_again(std::uint32_t core, std::uint64_t line, std::uint64_t words);

  private:
    struct Loss {
        std::uint32_t core;
        std::uint64_t written;  // words
    };

    LineMap<std::vector<Loss>> losses_;
};

}  // namespace machine
