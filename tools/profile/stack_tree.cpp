#include "tools/profile/stack_tree.h"

#include <algorithm>

namespace assay {

StackTree::StackTree(std::size_t columns, std::size_t most_depth)
    : most_depth_(most_depth),
      frames_{{0, 0, names_.id(""), false, false, std::vector<std::uint64_t>(columns)}} {}

std::uint32_t StackTree::enter(std::uint32_t parent, std::string_view name,
                               events::StackKind kind) {
    if (frames_[parent].depth >= most_depth_) return parent;
    const bool inlined = kind == events::StackKind::kInlined;
    const Strings::Id id = names_.id(name);
    const auto [entry, is_new] =
        known_.try_emplace({parent, id}, static_cast<std::uint32_t>(frames_.size()));
    if (is_new)
        frames_.push_back({parent, frames_[parent].depth + 1, id,
                           kind == events::StackKind::kHandler, inlined,
                           std::vector<std::uint64_t>(frames_.front().counts.size())});
    frames_[entry->second].inlined &= inlined;
    return entry->second;
}

void StackTree::add(std::uint32_t frame, std::size_t first_column, Counts counts) {
    for (std::size_t i = 0; i < counts.size(); ++i)
        frames_[frame].counts[first_column + i] += counts[i];
}

void StackTree::add(const WholeProfile& profile, std::size_t first_column) {
    std::vector<std::uint32_t> frame_of(profile.contexts().size());
    std::vector<std::uint64_t> counts(profile.events().size());
    for (std::uint32_t i = 1; i < frame_of.size(); ++i) {
        const WholeProfile::Context& context = profile.contexts()[i];
        frame_of[i] = enter(frame_of[context.parent], profile.text(context.function), context.kind);
        profile.counts().read(context.row, counts);
        add(frame_of[i], first_column, counts);
    }
}

void StackTree::make_inclusive() {
    for (std::size_t i = frames_.size(); i-- > 1;) add(frames_[i].parent, 0, frames_[i].counts);
}

std::vector<std::string_view> StackTree::path(std::uint32_t frame) const {
    std::vector<std::string_view> names;
    for (; frame != 0; frame = frames_[frame].parent) names.push_back(name(frames_[frame]));
    std::reverse(names.begin(), names.end());
    return names;
}

}  // namespace assay
