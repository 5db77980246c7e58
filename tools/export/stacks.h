// Shared parts of the formats for call stacks, lines and instructions. Events that are counted by
// calling context are exported by context. Their counts outside all contexts are a stack of one
// frame, kOutside. Other events are exported by function and line, without callers.
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

// Replaces the middle of a stack with more than kMostFrames frames. Formats that list each stack in
// full would otherwise take space quadratic in the depth of a recursion.
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
    // By context: the number of frames, and the last frame before kLeftOut if there is one.
    std::vector<std::uint32_t> depths_, last_outer_;
};

// The unit of an event if both pprof and speedscope know it; else `otherwise`.
std::string_view unit_of(const events::Event& event, std::string_view otherwise);

// FILE:LINE without folders, or an empty text if the file is unknown.
std::string source_position(std::string_view file, std::uint32_t line);

inline constexpr std::string_view kUnknown = "???";
// The file of the function of a context, which has only a name; kUnknown if not known.
std::string_view file_of(const Profile& profile, Strings::Id function);

// Calls `of_instruction(instruction, counts)` for each instruction of a place. After the
// instructions of each line and site, calls `of_rest(line, counts)` with the remaining counts of
// the line, if any. No count is passed twice. The counts are valid during the call.
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
