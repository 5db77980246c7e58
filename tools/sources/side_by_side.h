// Two versions of a text, line by line.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace assay {

// A line of the old text beside the same one of the new; kNone: the other has none there.
struct LinePair {
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::size_t before, after;  // indices
    bool operator==(const LinePair&) const = default;
};

// All lines of both, in their order: few of them without their like. Of those that have changed,
// the ones that are alike stand beside one another. Where texts differ in more than two thousand
// lines, what is between the equal beginning and end is not looked at.
std::vector<LinePair> side_by_side(const std::vector<std::string_view>& before,
                                   const std::vector<std::string_view>& after);

}  // namespace assay
