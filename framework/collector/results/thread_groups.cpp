#include "framework/collector/results/thread_groups.h"

#include "framework/collector/trace/thread_contexts.h"

#include <fmt/core.h>

namespace assay::collector {

ThreadGroups::ThreadGroups(const Profile& profile) : profile_(profile) {
    if (profile.thread_names == nullptr) return;
    counts_.emplace(GroupedCounts::Source{*profile.thread_counts, profile.samples->rows(),
                                          profile.samples->columns(), profile.columns,
                                          [](std::uint32_t thread) { return thread; }});
}

std::vector<events::Group> ThreadGroups::groups(std::uint32_t first) {
    first_ = first;
    std::vector<events::Group> groups;
    if (!counts_) return groups;
    for (const std::uint32_t thread : counts_->numbers()) {
        events::Group& group =
            groups.emplace_back(events::Group{first + counts_->group(thread), 0, "thread", {}, {}});
        if (thread == ThreadContexts::kLater) {
            group.name = "(later threads)";
            continue;
        }
        const auto name = profile_.thread_names->find(thread);
        group.name = name == profile_.thread_names->end() ? "???" : name->second;
        group.attributes.emplace_back("number", fmt::format("{}", thread + 1));
    }
    return groups;
}

void ThreadGroups::write_line(events::Writer& writer, std::span<const std::uint32_t> rows) {
    if (counts_) counts_->write_line(writer, rows, first_);
}

}  // namespace assay::collector
