#include "tools/diff/groups.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/profile/group_profile.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <utility>

namespace assay::diff {
namespace {

// Blocks of the heap are called after the line that allocates them, which any change moves:
// "make (a.c:12)".
std::string without_line(std::string_view name) {
    if (!name.ends_with(')')) return std::string(name);
    const std::size_t colon = name.rfind(':');
    if (colon == std::string_view::npos) return std::string(name);
    const std::string_view line = name.substr(colon + 1, name.size() - colon - 2);
    if (line.empty() || line.find_first_not_of("0123456789") != std::string_view::npos)
        return std::string(name);
    return std::string(name.substr(0, colon)) + ")";
}

std::string name_of(const GroupProfile& profile, std::uint32_t group) {
    std::vector<std::string> names;
    for (; group != GroupProfile::kNone; group = profile.groups()[group].parent)
        names.push_back(without_line(profile.groups()[group].name));
    std::reverse(names.begin(), names.end());
    return join(names, " > ");
}

void read(const std::string& kind, std::span<const std::string> paths, GroupProfile& profile) {
    for (const std::string& path : paths) {
        if (!events::can_be_read_again(path))
            throw Error(
                fmt::format("{} cannot be read twice, as groups are: write it to a file first",
                            path == "-" ? "standard input" : path));
        profile.add_file(path);
    }
    profile.finish();
    const std::vector<std::string>& kinds = profile.kinds();
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return;
    const std::string hint = kind == "object"                     ? "run with --objects"
                             : kind == "type" || kind == "member" ? "run with --types"
                             : kind == "thread"                   ? "run with --threads"
                             : kinds.empty()                      ? "it has counts by nothing else"
                                             : "it has counts by " + join(kinds, " and ") + " only";
    throw Error(fmt::format("{} has no counts by {}: {}", paths.front(), kind, hint));
}

}  // namespace

GroupChanges group_changes(const std::string& kind, const events::EventChoice& choice,
                           std::span<const std::string> old_paths,
                           std::span<const std::string> new_paths) {
    GroupProfile before, after;
    before.choose_events(choice);
    after.choose_events(choice);
    read(kind, old_paths, before);
    read(kind, new_paths, after);
    const std::size_t columns = before.totals().size();
    std::map<std::string, std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>>> sums;
    const auto add = [&](const GroupProfile& profile, auto side) {
        for (std::uint32_t i = 0; i < profile.groups().size(); ++i) {
            const GroupProfile::Group& group = profile.groups()[i];
            if (group.kind != kind) continue;
            auto& both = sums[name_of(profile, i)];
            both.first.resize(columns);
            both.second.resize(columns);
            std::vector<std::uint64_t>& sum = both.*side;
            for (std::size_t event = 0; event < group.counts.size(); ++event)
                sum[event] += group.counts[event];
        }
    };
    using Both = std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>>;
    add(before, &Both::first);
    add(after, &Both::second);
    GroupChanges changes;
    for (auto& [name, both] : sums) {
        const std::string& kept = changes.names.emplace_back(name);
        const Counts old_counts = changes.counts.emplace_back(std::move(both.first));
        const Counts new_counts = changes.counts.emplace_back(std::move(both.second));
        changes.rows.push_back({kind, kept, old_counts, new_counts});
    }
    return changes;
}

}  // namespace assay::diff
