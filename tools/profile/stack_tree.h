// Calling contexts by the functions on their way: of one profile for a flame graph, of two to be
// compared. Contexts that were entered from different places, which another version of a program
// has elsewhere, are one frame if all functions on their ways have the same names.
#pragma once

#include "tools/profile/profile.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// Which events are, in either of two profiles of the same events; the second may be null.
std::vector<bool> counted_by_context(const Profile& profile, const Profile* other);

// Stands for what of such an event belongs to no context, because the profiler could not tell.
inline constexpr std::string_view kOutside = "[outside of known calls]";

// The count of kOutside.
std::uint64_t outside(const Profile& profile, std::size_t event);

class StackTree {
  public:
    struct Frame {
        std::uint32_t parent, depth;
        Strings::Id name;
        bool handler;
        bool inlined, jumped;  // wherever it was entered from; jumped: or inlined there
        std::vector<std::uint64_t> counts;
    };

    // `columns` counts for each frame: those of several profiles side by side. What is deeper than
    // `most_depth` counts for the frame of that depth which it is in.
    StackTree(std::size_t columns, std::size_t most_depth);

    // The frame that a function of that name has within another. 0 is outside of all calls.
    std::uint32_t enter(std::uint32_t parent, std::string_view name, events::StackKind kind);
    void add(std::uint32_t frame, std::size_t first_column, Counts counts);
    // Contexts, and kOutside if it counts anything; of the other events functions outside of all
    // calls, and in them those that were inlined into them.
    void add(const Profile& profile, std::size_t first_column,
             const std::vector<bool>& counted_by_context);
    // Adds to each frame the counts of those within it. Once, after everything else.
    void make_inclusive();

    // Each behind its parent. The first is what is outside, its own parent, and has no name.
    std::span<const Frame> frames() const { return frames_; }
    std::string_view name(const Frame& frame) const { return names_[frame.name]; }
    static events::StackKind kind(const Frame& frame) {
        return frame.inlined   ? events::StackKind::kInlined
               : frame.handler ? events::StackKind::kHandler
                               : events::StackKind::kCall;
    }
    // The names on the way to a frame, outermost first.
    std::vector<std::string_view> path(std::uint32_t frame) const;

  private:
    void add_contexts(const Profile& profile, std::size_t first_column);
    void add_outside(const Profile& profile, std::size_t first_column,
                     const std::vector<bool>& counted_by_context);
    void add_functions(const Profile& profile, std::size_t first_column,
                       const std::vector<bool>& left_out);

    std::size_t most_depth_;
    Strings names_;
    std::vector<Frame> frames_;
    std::map<std::pair<std::uint32_t, Strings::Id>, std::uint32_t> known_;
};

}  // namespace assay
