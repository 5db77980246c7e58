#include "tools/export/stacks.h"

#include <algorithm>

namespace assay::exporting {
namespace {

constexpr std::size_t kHalf = kMostFrames / 2;

}  // namespace

bool is_counted_by_context(const WholeProfile& profile, std::size_t event) {
    return profile.context_totals()[event] != 0;
}

Stacks::Stacks(const WholeProfile& profile)
    : profile_(profile), depths_(profile.contexts().size()), last_outer_(depths_.size()) {
    // A context stands behind the one that it was entered from.
    for (std::uint32_t context = 1; context < depths_.size(); ++context) {
        const std::uint32_t parent = profile.contexts()[context].parent;
        depths_[context] = depths_[parent] + 1;
        last_outer_[context] = depths_[context] == kHalf ? context : last_outer_[parent];
    }
}

std::vector<std::uint32_t> Stacks::to(std::uint32_t context) const {
    const std::size_t depth = depths_[context];
    const bool all = depth <= kMostFrames;
    std::vector<std::uint32_t> path(all ? depth : kMostFrames + 1);
    const auto fill = [&](std::size_t end, std::size_t count, std::uint32_t from) {
        for (; count != 0; --count, from = profile_.contexts()[from].parent) path[--end] = from;
    };
    fill(path.size(), all ? depth : kHalf, context);
    if (!all) fill(kHalf, kHalf, last_outer_[context]);
    return path;
}

std::string_view unit_of(const events::Event& event, std::string_view otherwise) {
    for (const std::string_view unit :
         {"bytes", "seconds", "milliseconds", "microseconds", "nanoseconds"})
        if (event.unit == unit) return unit;
    return otherwise;
}

std::string source_position(std::string_view file, std::uint32_t line) {
    if (file == kUnknown) return {};
    file.remove_prefix(std::min(file.find_last_of("/\\") + 1, file.size()));
    return std::string(file) + ":" + (line == 0 ? "?" : std::to_string(line));
}

}  // namespace assay::exporting
