#include "tools/profile/stack_tree.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay {

namespace {

// Memory of a frame without counts, with its node in the map.
constexpr std::size_t kFrameBytes = sizeof(StackTree::Frame) + 64;

}  // namespace

std::vector<bool> counted_by_context(const Profile& profile, const Profile* other) {
    std::vector<bool> by_context;
    for (std::size_t event = 0; event < profile.events().size(); ++event)
        by_context.push_back(profile.context_totals()[event] != 0 ||
                             (other && other->context_totals()[event] != 0));
    return by_context;
}

std::uint64_t outside(const Profile& profile, std::size_t event) {
    return profile.totals()[event] - profile.context_totals()[event];
}

StackTree::StackTree(std::size_t columns, std::size_t most_depth)
    : most_depth_(most_depth),
      frames_{{0, 0, names_.id(""), false, false, false, std::vector<std::uint64_t>(columns), {}}} {
}

std::uint32_t StackTree::enter(std::uint32_t parent, std::string_view name,
                               events::StackKind kind) {
    if (frames_[parent].depth >= most_depth_) return parent;
    const bool inlined = kind == events::StackKind::kInlined;
    const bool jumped = inlined || kind == events::StackKind::kJumped;
    const Strings::Id id = names_.id(name);
    const auto [entry, is_new] =
        known_.try_emplace({parent, id}, static_cast<std::uint32_t>(frames_.size()));
    if (is_new) {
        const std::size_t columns = frames_.front().counts.size();
        if (frames_.size() > kMostBytes / (columns * sizeof(std::uint64_t) + kFrameBytes))
            throw Error(fmt::format(
                "the profile has more than {} call stacks, which no program has", frames_.size()));
        frames_.push_back({parent,
                           frames_[parent].depth + 1,
                           id,
                           kind == events::StackKind::kHandler,
                           inlined,
                           jumped,
                           std::vector<std::uint64_t>(columns),
                           {}});
    }
    frames_[entry->second].inlined &= inlined;
    frames_[entry->second].jumped &= jumped;
    return entry->second;
}

void StackTree::add(std::uint32_t frame, std::size_t first_column, Counts counts) {
    for (std::size_t i = 0; i < counts.size(); ++i)
        frames_[frame].counts[first_column + i] += counts[i];
}

void StackTree::add_contexts(const Profile& profile, std::size_t first_column) {
    std::vector<std::uint32_t> frame_of(profile.contexts().size());
    std::vector<std::uint64_t> counts(profile.events().size());
    for (std::uint32_t i = 1; i < frame_of.size(); ++i) {
        const Profile::Context& context = profile.contexts()[i];
        frame_of[i] = enter(frame_of[context.parent], profile.text(context.function), context.kind);
        profile.counts().read(context.row, counts);
        add(frame_of[i], first_column, counts);
        add_calls(frame_of[i], 0, context.calls);
    }
    for (const auto& [recursion, number] : profile.recursions())
        add_calls(frame_of[recursion.context], 0, number);
}

void StackTree::add_outside(const Profile& profile, std::size_t first_column,
                            const std::vector<bool>& counted_by_context) {
    std::vector<std::uint64_t> counts(profile.events().size());
    for (std::size_t event = 0; event < counts.size(); ++event)
        if (counted_by_context[event]) counts[event] = outside(profile, event);
    if (any_count(counts)) add(enter(0, kOutside, events::StackKind::kCall), first_column, counts);
}

void StackTree::add_functions(const Profile& profile, std::size_t first_column,
                              const std::vector<bool>& left_out) {
    const auto kind = [](bool outermost) {
        return outermost ? events::StackKind::kCall : events::StackKind::kInlined;
    };
    std::vector<std::uint32_t> frame_of(profile.sites().size());
    for (std::uint32_t i = 1; i < frame_of.size(); ++i) {
        const Profile::Site& site = profile.sites()[i];
        frame_of[i] =
            enter(frame_of[site.parent], profile.text(site.function), kind(site.parent == 0));
    }
    std::vector<std::uint64_t> counts(profile.events().size());
    for (const Profile::Line& line : profile.lines_by_site()) {
        const Strings::Id function = profile.places()[line.place].function;
        profile.counts().read(line.row, counts);
        for (std::size_t i = 0; i < counts.size(); ++i)
            if (left_out[i]) counts[i] = 0;
        add(enter(frame_of[line.site], profile.text(function), kind(line.site == 0)), first_column,
            counts);
    }
}

void StackTree::add(const Profile& profile, std::size_t first_column,
                    const std::vector<bool>& counted_by_context) {
    add_contexts(profile, first_column);
    add_outside(profile, first_column, counted_by_context);
    if (std::find(counted_by_context.begin(), counted_by_context.end(), false) !=
        counted_by_context.end())
        add_functions(profile, first_column, counted_by_context);
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
