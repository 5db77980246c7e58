#include "framework/collector/results/grouped_counts.h"

#include "framework/collector/results/object_groups.h"
#include "framework/collector/trace/context_tree.h"

#include <fmt/core.h>
#include <algorithm>
#include <tuple>

namespace assay::collector {

GroupedCounts::GroupedCounts(const Source& source)
    : counts_(&source.counts),
      width_(source.columns.size()),
      events_(source.database_columns, SIZE_MAX),
      first_of_row_(source.instructions + 1) {
    for (std::size_t i = 0; i < width_; ++i) events_[source.columns[i]] = i;
    const auto has_counts = [&](std::uint32_t row) {
        bool any = false;
        counts_->each_count(row, [&](std::size_t column, std::uint64_t count) {
            any |= events_[column] != SIZE_MAX && count != 0;
        });
        return any;
    };
    for (ContextCounts::Row row : counts_->sorted_rows()) {
        if (row.instruction == ContextCounts::kAnyRow || !has_counts(row.number)) continue;
        row.context = source.number(row.context);
        numbers_.push_back(row.context);
        rows_.push_back(row);
    }
    add_numbers({});
    std::sort(rows_.begin(), rows_.end(),
              [](const ContextCounts::Row& a, const ContextCounts::Row& b) {
                  return std::tie(a.instruction, a.context, a.number) <
                         std::tie(b.instruction, b.context, b.number);
              });
    for (const ContextCounts::Row& row : rows_) ++first_of_row_[row.instruction + 1];
    for (std::size_t i = 1; i < first_of_row_.size(); ++i) first_of_row_[i] += first_of_row_[i - 1];
}

void GroupedCounts::add_numbers(std::span<const std::uint32_t> more) {
    numbers_.insert(numbers_.end(), more.begin(), more.end());
    std::sort(numbers_.begin(), numbers_.end());
    numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
    sums_.resize(numbers_.size() * width_);
}

std::uint32_t GroupedCounts::group(std::uint32_t number) const {
    return static_cast<std::uint32_t>(std::lower_bound(numbers_.begin(), numbers_.end(), number) -
                                      numbers_.begin());
}

void GroupedCounts::write_line(events::Writer& writer, std::span<const std::uint32_t> rows,
                               std::uint32_t first) {
    if (rows_.empty()) return;
    touched_.clear();
    for (const std::uint32_t row : rows)
        for (std::uint32_t i = first_of_row_[row]; i < first_of_row_[row + 1]; ++i) {
            const std::uint32_t group = this->group(rows_[i].context);
            touched_.push_back(group);
            counts_->each_count(rows_[i].number, [&](std::size_t column, std::uint64_t count) {
                if (events_[column] != SIZE_MAX) sums_[group * width_ + events_[column]] += count;
            });
        }
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::uint32_t group : touched_) {
        const std::span<std::uint64_t> sums = std::span(sums_).subspan(group * width_, width_);
        writer.counts_of(first + group, sums);
        std::fill(sums.begin(), sums.end(), 0);
    }
}

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
