#include "tools/report/flame_graph.h"

#include <map>
#include <utility>

namespace assay::report {
namespace {

constexpr std::size_t kMostStackDepth = 256;

}  // namespace

std::vector<FlameFrame> flame_frames(const WholeProfile& profile) {
    using Column = std::vector<std::uint64_t>;
    const std::size_t columns = profile.events().size();
    std::vector<FlameFrame> frames = {{0, 0, 0, false, false, Column(columns)}};
    std::map<std::pair<std::uint32_t, Strings::Id>, std::uint32_t> known;
    std::vector<std::uint32_t> frame_of(profile.contexts().size());
    for (std::uint32_t i = 1; i < profile.contexts().size(); ++i) {
        const WholeProfile::Context& context = profile.contexts()[i];
        const std::uint32_t parent = frame_of[context.parent];
        if (frames[parent].depth >= kMostStackDepth) {
            frame_of[i] = parent;
        } else {
            const auto [entry, is_new] = known.try_emplace(
                {parent, context.function}, static_cast<std::uint32_t>(frames.size()));
            const bool inlined = context.kind == events::StackKind::kInlined;
            if (is_new)
                frames.push_back({parent, frames[parent].depth + 1, context.function,
                                  context.kind == events::StackKind::kHandler, inlined,
                                  Column(columns)});
            frame_of[i] = entry->second;
            frames[frame_of[i]].inlined &= inlined;
        }
        profile.counts().add_to(frames[frame_of[i]].inclusive, context.row);
    }
    for (std::size_t i = frames.size(); i-- > 1;)
        for (std::size_t event = 0; event < columns; ++event)
            frames[frames[i].parent].inclusive[event] += frames[i].inclusive[event];
    return frames;
}

}  // namespace assay::report
