#include "framework/collector/results/type_groups.h"

#include "framework/collector/results/data_events.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::collector {

using data_references::TypeNode;

void TypeGroups::add(const std::string& object_path, std::span<const std::uint64_t> addresses,
                     std::span<const std::uint32_t> rows) {
    if (references_.empty() || addresses.empty()) return;
    data_references::MemberReferences object(object_path, tree_, symbols::kDebugRoot,
                                             symbols::ImageCache(profile_.debug_cache));
    const std::vector<data_references::MemberReference> found = object.find(addresses);
    for (std::size_t i = 0; i < rows.size(); ++i) references_[rows[i]] = found[i];
}

// An event is not of data if instructions have it that refer to none, as misses of an instruction
// cache do. A few may have it nevertheless: system calls, which refer to memory, too.
void TypeGroups::find_data_events() {
    constexpr std::uint64_t kLeastPart = 10;
    of_data_.assign(profile_.columns.size(), false);
    for (std::size_t event = 0; event < profile_.columns.size(); ++event) {
        if (!is_of_data(profile_.header.events[event].unit)) continue;
        std::uint64_t all = 0, without = 0;
        for (std::uint32_t row = 0; row < references_.size(); ++row) {
            const Kind kind = references_[row].kind;
            const std::uint64_t count =
                kind == Kind::kNone ? 0 : profile_.samples->counts(row)[profile_.columns[event]];
            all += count;
            if (kind == Kind::kNoMemory) without += count;
        }
        of_data_[event] = without <= all / kLeastPart;
    }
}

bool TypeGroups::has_counts(std::uint32_t row) const {
    for (std::size_t event = 0; event < of_data_.size(); ++event)
        if (of_data_[event] && profile_.samples->counts(row)[profile_.columns[event]] != 0)
            return true;
    return false;
}

void TypeGroups::finish(std::uint32_t first) {
    if (references_.empty()) return;
    find_data_events();
    const std::vector<TypeNode>& nodes = tree_.nodes();
    groups_.assign(nodes.size(), 0);
    for (std::uint32_t row = 0; row < references_.size(); ++row)
        if (references_[row].kind == Kind::kTyped && has_counts(row))
            groups_[references_[row].node] = 1;
    // A node is behind those that it is in.
    for (std::size_t node = nodes.size(); node-- > 1;)
        if (groups_[node] != 0) groups_[nodes[node].parent] = 1;
    groups_[0] = 0;
    for (std::uint32_t& group : groups_)
        if (group != 0) group = first++;
    sums_.resize(nodes.size() * profile_.columns.size());
}

std::string TypeGroups::coverage() const {
    if (profile_.references.size() < references_.size()) return "";
    std::uint64_t unknown = 0, none = 0, stack = 0, typed = 0;
    for (std::uint32_t row = 0; row < references_.size(); ++row) {
        const Kind kind = references_[row].kind;
        (kind == Kind::kTyped   ? typed
         : kind == Kind::kStack ? stack
         : kind == Kind::kNone  ? none
                                : unknown) += profile_.references[row];
    }
    const std::uint64_t all = unknown + none + stack + typed;
    if (all == 0) return "";
    const auto percent = [](std::uint64_t part, std::uint64_t whole) {
        return whole == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
    };
    return fmt::format(
        "known of {:.1f} % of references in code with debug information, those to plain variables "
        "in the stack aside ({:.1f} % of all); {:.1f} % of all are in code without",
        percent(typed, typed + unknown), percent(stack, all), percent(none, all));
}

std::vector<events::Group> TypeGroups::groups() const {
    std::vector<events::Group> groups;
    for (std::size_t i = 1; i < groups_.size(); ++i) {
        if (groups_[i] == 0) continue;
        const TypeNode& node = tree_.nodes()[i];
        events::Group group{
            groups_[i], groups_[node.parent], node.is_member ? "member" : "type", node.name, {}};
        const auto add = [&](const char* key, const auto& value) {
            group.attributes.emplace_back(key, fmt::format("{}", value));
        };
        if (node.is_member) {
            add("offset", node.offset);
            add("size", node.size);
            add("type", node.type);
            if (node.bits != 0)
                group.attributes.emplace_back("bits",
                                              fmt::format("{}:{}", node.first_bit, node.bits));
        } else {
            add("size", node.size);
            add("kind", node.kind);
            if (!node.file.empty()) add("file", node.file);
            if (node.line != 0) add("line", node.line);
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

void TypeGroups::write_line(events::Writer& writer, std::span<const std::uint32_t> rows) {
    if (references_.empty()) return;
    const std::size_t events = of_data_.size();
    touched_.clear();
    for (const std::uint32_t row : rows) {
        const std::uint32_t node = references_[row].node;
        if (groups_[node] == 0 || references_[row].kind != Kind::kTyped || !has_counts(row))
            continue;
        touched_.push_back(node);
        for (std::size_t event = 0; event < events; ++event)
            if (of_data_[event])
                sums_[node * events + event] +=
                    profile_.samples->counts(row)[profile_.columns[event]];
    }
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::uint32_t node : touched_) {
        const std::span<std::uint64_t> sums = std::span(sums_).subspan(node * events, events);
        writer.counts_of(groups_[node], sums);
        std::fill(sums.begin(), sums.end(), 0);
    }
}

}  // namespace assay::collector
