// What the formats of call stacks have in common.
//
// An event that is counted by calling context is exported by context. What of it belongs to no
// context is a stack of one frame, kOutside. Any other event is exported by function and line, as
// if each function had been called by nobody.
#pragma once

#include "tools/profile/profile.h"
#include "tools/profile/stack_tree.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::exporting {

// Stands for the middle of a stack that has more frames than kMostFrames. Formats that list each
// stack in full would otherwise need space quadratic in the depth of a recursion.
inline constexpr std::string_view kLeftOut = "[frames left out]";
inline constexpr std::size_t kMostFrames = 512;

bool is_counted_by_context(const Profile& profile, std::size_t event);

// The stacks of a profile's contexts.
class Stacks {
  public:
    explicit Stacks(const Profile& profile);
    // The contexts from the outermost to this one; 0 stands for kLeftOut.
    std::vector<std::uint32_t> to(std::uint32_t context) const;

  private:
    const Profile& profile_;
    // By context: how many frames it has; of those with many, the last frame before kLeftOut.
    std::vector<std::uint32_t> depths_, last_outer_;
};

// The unit of an event if it is one that both pprof and speedscope know; else `otherwise`.
std::string_view unit_of(const events::Event& event, std::string_view otherwise);

// FILE:LINE without folders, or an empty text if the file is unknown.
std::string source_position(std::string_view file, std::uint32_t line);

inline constexpr std::string_view kUnknown = "???";

}  // namespace assay::exporting
