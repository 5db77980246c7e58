// Compares two versions of a text line by line.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace assay {

// A line of the old text beside the corresponding line of the new text. kNone: the other text has
// no such line.
struct LinePair {
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::size_t before, after;  // indices
    bool operator==(const LinePair&) const = default;
};

// All lines of both texts in their order, with as few unpaired lines as possible. Changed lines are
// paired if they are similar. If the texts differ in more than two thousand lines, only their equal
// beginnings and ends are paired.
std::vector<LinePair> side_by_side(const std::vector<std::string_view>& before,
                                   const std::vector<std::string_view>& after);

}  // namespace assay
