#include "framework/collector/profile_stacks.h"

#include <algorithm>
#include <map>
#include <set>

namespace assay::collector {

StackLines::StackLines(const Profile& profile,
                       const std::function<ObjectPlace(std::uint64_t)>& find)
    : profile_(profile) {
    if (profile.context_counts->empty()) return;
    const std::span<const trace_context_t> contexts = profile.contexts;
    std::vector<bool> shown(contexts.size());
    for (std::size_t i = contexts.size(); i-- > 1;) {
        const auto counts = profile.context_counts->counts(static_cast<std::uint32_t>(i));
        const bool any =
            std::any_of(profile.columns.begin(), profile.columns.end(),
                        [&](std::size_t column) { return !counts.empty() && counts[column] != 0; });
        shown[i] = shown[i] || any;
        if (shown[i]) shown[contexts[i].parent] = true;
    }
    std::vector<std::uint32_t> numbers(contexts.size());
    for (std::uint32_t i = 1; i < contexts.size(); ++i) {
        if (!shown[i]) continue;
        lines_.push_back({i,
                          numbers[contexts[i].parent],
                          find(contexts[i].call),
                          find(contexts[i].function),
                          {}});
        numbers[i] = static_cast<std::uint32_t>(lines_.size());
    }
}

void StackLines::resolve(const std::vector<events::Object>& objects) {
    std::map<std::uint32_t, std::set<std::uint64_t>> wanted;
    for (const Line& line : lines_) wanted[line.function.object].insert(line.function.address);
    std::map<ObjectPlace, std::string_view> names;
    for (const auto& [object, addresses] : wanted) {
        const std::vector<std::uint64_t> sorted(addresses.begin(), addresses.end());
        const auto locations = profile_.symbolizer->resolve(objects[object].path, sorted);
        for (std::size_t i = 0; i < sorted.size(); ++i)
            names[{object, sorted[i]}] = locations[i].frames.back().function;
    }
    for (Line& line : lines_) line.name = names[line.function];
}

void StackLines::write(events::Writer& writer) const {
    std::vector<std::uint64_t> counts(profile_.columns.size());
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        const Line& line = lines_[i];
        const auto all = profile_.context_counts->counts(line.context);
        for (std::size_t c = 0; c < counts.size(); ++c)
            counts[c] = all.empty() ? 0 : all[profile_.columns[c]];
        const bool handler = profile_.contexts[line.context].flags & TRACE_CONTEXT_SIGNAL;
        writer.stack({.number = static_cast<std::uint32_t>(i + 1),
                      .parent = line.parent,
                      .object = line.call.object,
                      .address = line.call.address,
                      .handler = handler,
                      .function = line.name},
                     counts);
    }
}

}  // namespace assay::collector
