// What the formats of call stacks, and of lines and instructions, have in common.
//
// An event that is counted by calling context is exported by context. What of it belongs to no
// context is a stack of one frame, kOutside. Any other event is exported by function and line, as
// if each function had been called by nobody.
#pragma once

#include "tools/profile/profile.h"
#include "tools/profile/stack_tree.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
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
// The file of the function of that name, which is all that contexts know; else kUnknown.
std::string_view file_of(const Profile& profile, Strings::Id function);

// Lines and instructions of a place, by the sites where they were inlined, without counting
// anything twice: an instruction's counts are in its line's, too.

// Calls `of_instruction(instruction, counts)` for each instruction of a place with those of its
// counts, and behind those of a line `of_rest(line, counts)` with what no instruction accounts for,
// if there is anything. The counts are valid during the call.
template <typename OfInstruction, typename OfRest>
void for_each_part(const Profile& profile, std::uint32_t place, const OfInstruction& of_instruction,
                   const OfRest& of_rest) {
    std::vector<std::uint64_t> counts(profile.events().size()), rest(counts.size());
    auto at = profile.instructions(place).begin();
    const auto end = profile.instructions(place).end();
    for (const Profile::Line& line : profile.lines_by_site(place)) {
        profile.counts().read(line.row, rest);
        for (; at != end && std::tie(at->line, at->site) <= std::tie(line.line, line.site); ++at) {
            profile.counts().read(at->row, counts);
            for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= std::min(rest[i], counts[i]);
            of_instruction(*at, counts);
        }
        if (any_count(rest)) of_rest(line, rest);
    }
}

}  // namespace assay::exporting
