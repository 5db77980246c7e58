// A tree of calling contexts by names of functions, for flame graphs and for comparing two
// profiles. Contexts that differ only in the places of their calls are one frame, because another
// version of the program has its calls elsewhere.
#pragma once

#include "tools/profile/profile.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// Events that are counted by context in a profile. `other` has the same events, or is null.
std::vector<bool> counted_by_context(const Profile& profile, const Profile* other);

// A frame for counts of such events outside all contexts, where the profiler could not tell the
// context.
inline constexpr std::string_view kOutside = "[outside of known calls]";

// The count of kOutside.
std::uint64_t outside(const Profile& profile, std::size_t event);

class StackTree {
  public:
    struct Frame {
        std::uint32_t parent, depth;
        Strings::Id name;
        bool handler;
        bool inlined, jumped;  // true if all its contexts are inlined; `jumped`: if all are jumped
                               // to or inlined
        std::vector<std::uint64_t> counts;
        // How often the frame was entered, or 0 if that is not known; of two profiles, by side.
        std::array<std::uint64_t, 2> calls{};
    };

    // `columns` is the number of counts per frame; several profiles are side by side. Frames deeper
    // than `most_depth` count for their ancestor at that depth.
    StackTree(std::size_t columns, std::size_t most_depth);

    // Returns the frame of a function called from `parent`. 0 is outside of all calls.
    std::uint32_t enter(std::uint32_t parent, std::string_view name, events::StackKind kind);
    void add(std::uint32_t frame, std::size_t first_column, Counts counts);
    void add_calls(std::uint32_t frame, std::size_t side, std::uint64_t number) {
        frames_[frame].calls[side] += number;
    }
    // Adds the contexts of a profile, and kOutside if it has counts. Adds other events by function,
    // outside of all calls, with inlined functions within them.
    void add(const Profile& profile, std::size_t first_column,
             const std::vector<bool>& counted_by_context);
    // Adds the counts of inner frames to each frame. Call it once, after all else.
    void make_inclusive();

    // Each frame follows its parent. Frame 0 is outside of all calls, is its own parent, and has no
    // name.
    std::span<const Frame> frames() const { return frames_; }
    std::string_view name(const Frame& frame) const { return names_[frame.name]; }
    static events::StackKind kind(const Frame& frame) {
        return frame.inlined   ? events::StackKind::kInlined
               : frame.handler ? events::StackKind::kHandler
                               : events::StackKind::kCall;
    }
    // Names from the outermost frame to this frame.
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
