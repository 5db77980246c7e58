// What cores have lost to other cores' writes, and which words have been written since: true and
// false sharing (Torrellas, Lam and Hennessy, "False sharing and spatial locality in multiprocessor
// caches", IEEE Transactions on Computers 43, 1994).
#pragma once

#include "plugins/machine/line_map.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace machine {

class Sharing {
  public:
    // A core has lost the line.
    void lost(std::uint32_t core, std::uint64_t line);
    // Another core has written these words of it (line_words.h).
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
