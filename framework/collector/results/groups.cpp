#include "framework/collector/results/groups.h"

#include "framework/collector/results/counted_code.h"

#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::collector {

GroupLines::GroupLines(const Profile& profile, const GroupCounts& counts,
                       const std::function<std::uint32_t(std::uint32_t)>& final_number)
    : counts_(counts),
      width_(profile.columns.size()),
      events_(profile.counts->samples.columns(), SIZE_MAX),
      first_of_row_(profile.counts->samples.rows() + 1) {
    for (std::size_t i = 0; i < width_; ++i) events_[profile.columns[i]] = i;
    const auto has_counts = [&](std::uint32_t row) {
        bool any = false;
        counts_.each_count(row, [&](std::size_t column, std::uint64_t count) {
            any |= events_[column] != SIZE_MAX && count != 0;
        });
        return any;
    };
    for (GroupCounts::Row row : counts_.sorted_rows()) {
        if (row.instruction == GroupCounts::kAnyRow || !has_counts(row.number)) continue;
        if (final_number) row.group = final_number(row.group);
        groups_.push_back(row.group);
        rows_.push_back(row);
    }
    add({});
    std::sort(rows_.begin(), rows_.end(), [](const GroupCounts::Row& a, const GroupCounts::Row& b) {
        return std::tie(a.instruction, a.group, a.number) <
               std::tie(b.instruction, b.group, b.number);
    });
    for (const GroupCounts::Row& row : rows_) ++first_of_row_[row.instruction + 1];
    for (std::size_t i = 1; i < first_of_row_.size(); ++i) first_of_row_[i] += first_of_row_[i - 1];
}

void GroupLines::add(std::span<const std::uint32_t> more) {
    groups_.insert(groups_.end(), more.begin(), more.end());
    std::sort(groups_.begin(), groups_.end());
    groups_.erase(std::unique(groups_.begin(), groups_.end()), groups_.end());
    sums_.resize(groups_.size() * width_);
}

std::uint32_t GroupLines::number_from(std::uint32_t first) {
    first_ = first;
    return first + static_cast<std::uint32_t>(groups_.size());
}

std::uint32_t GroupLines::place_of(std::uint32_t group) const {
    return static_cast<std::uint32_t>(std::lower_bound(groups_.begin(), groups_.end(), group) -
                                      groups_.begin());
}

std::uint32_t GroupLines::number(std::uint32_t group) const {
    return first_ + place_of(group);
}

void GroupLines::write_line(events::Writer& writer, std::span<const std::uint32_t> rows) {
    if (rows_.empty()) return;
    touched_.clear();
    for (const std::uint32_t row : rows)
        for (std::uint32_t i = first_of_row_[row]; i < first_of_row_[row + 1]; ++i) {
            const std::uint32_t place = place_of(rows_[i].group);
            touched_.push_back(place);
            counts_.each_count(rows_[i].number, [&](std::size_t column, std::uint64_t count) {
                if (events_[column] != SIZE_MAX) sums_[place * width_ + events_[column]] += count;
            });
        }
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::uint32_t place : touched_) {
        const std::span<std::uint64_t> sums = std::span(sums_).subspan(place * width_, width_);
        writer.counts_of(first_ + place, sums);
        std::fill(sums.begin(), sums.end(), 0);
    }
}

namespace {

std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

std::string_view class_of(const DataObject& object) {
    using Kind = DataObject::Kind;
    switch (object.kind) {
        case Kind::kVariable:
            return "static";
        case Kind::kThreadLocal:
            return "thread-local";
        case Kind::kHeap:
            return "heap";
        case Kind::kMapping:
            return "mapping";
        case Kind::kFile:
            return "file";
        case Kind::kStack:
        case Kind::kFrameVariable:
            return "stack";
        case Kind::kBreak:
        case Kind::kUnknown:
            return "other";
    }
    return "other";
}

// The innermost call in own code that led to an allocation. If there is none, the innermost call.
const symbols::Frame& site_of(const Profile& profile, std::uint32_t allocation, CountedCode& code) {
    for (std::uint32_t at = allocation; at != 0; at = profile.contexts[at].parent) {
        const ObjectPlace place = code.place_of(profile.contexts[at].call);
        const std::string& binary = code.objects()[place.object].path;
        for (const symbols::Frame& frame : code.frames_of(place))
            if (profile.own.has(frame.function, frame.file, binary)) return frame;
    }
    return code.frames_of(code.place_of(profile.contexts[allocation].call)).front();
}

bool was_allocated(const DataObject& object) {
    return object.kind == DataObject::Kind::kHeap || object.kind == DataObject::Kind::kMapping;
}

}  // namespace

// Variables of a frame lie on a stack, and the stack has a group that contains them. Blocks that
// nobody referred to are shown if they were in use when the heap was largest, or were never freed.
GroupLines object_lines(const Profile& profile) {
    GroupLines lines(profile, profile.counts->objects.counts,
                     [&](std::uint32_t object) { return profile.objects->final_number(object); });
    std::vector<std::uint32_t> stacks;
    for (const std::uint32_t number : lines.groups()) {
        const DataObject& object = profile.objects->objects()[number];
        if (object.kind == DataObject::Kind::kFrameVariable) stacks.push_back(object.stack);
    }
    lines.add(stacks);
    std::vector<std::uint32_t> held;
    const std::vector<DataObject>& all =
        profile.objects ? profile.objects->objects() : std::vector<DataObject>();
    for (std::uint32_t i = 0; i < all.size(); ++i)
        if (all[i].kind == DataObject::Kind::kHeap &&
            (all[i].live != 0 || profile.objects->heap().at_peak(i) != 0))
            held.push_back(i);
    lines.add(held);
    return lines;
}

std::vector<std::uint32_t> allocation_contexts(const Profile& profile, const GroupLines& objects) {
    std::vector<std::uint32_t> contexts;
    for (const std::uint32_t number : objects.groups()) {
        const DataObject& object = profile.objects->objects()[number];
        if (was_allocated(object) && object.context != 0) contexts.push_back(object.context);
    }
    std::sort(contexts.begin(), contexts.end());
    contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
    return contexts;
}

events::Group object_group(const Profile& profile, const GroupLines& objects, std::uint32_t number,
                           CountedCode& code, StackLines& stacks) {
    using Kind = DataObject::Kind;
    const DataObject& object = profile.objects->objects()[number];
    events::Group group{objects.number(number), 0, "object", {}, {}};
    const auto add = [&](const char* key, const auto& value) {
        group.attributes.emplace_back(key, fmt::format("{}", value));
    };
    const auto add_number = [&](const char* key, std::uint64_t value) {
        if (value != 0) add(key, value);
    };
    add("class", class_of(object));
    switch (object.kind) {
        case Kind::kVariable:
        case Kind::kThreadLocal: {
            const std::string& path = profile.objects->path(object.file);
            group.name = object.symbol->name;
            if (object.symbol->is_section)
                group.name = fmt::format("{} of {}", group.name, base_name(path));
            add_number("size", object.size);
            if (!object.symbol->type.empty()) add("type", object.symbol->type);
            add("binary", code.object_of_file(path));
            break;
        }
        case Kind::kHeap:
        case Kind::kMapping: {
            if (object.context != 0) {
                const symbols::Frame& caller = site_of(profile, object.context, code);
                group.name = caller.function;
                if (caller.line != 0)
                    group.name += fmt::format(" ({}:{})", base_name(caller.file), caller.line);
            } else {
                group.name = object.kind == Kind::kHeap ? "(unknown site)" : "(anonymous memory)";
            }
            add_number("size", object.size);
            add_number("blocks", object.blocks);
            add_number("bytes", object.bytes);
            add_number("peak", object.peak);
            add_number("left", object.live);
            if (object.kind == Kind::kHeap)
                add_number("at-peak", profile.objects->heap().at_peak(number));
            if (object.blocks != 0) add("first", object.first);
            add_number("last", object.last);
            if (object.kind == Kind::kHeap && object.blocks != 0) {
                add("lifetimes", object.lifetimes);
                add("touched", object.touched);
            }
            if (object.context != 0) add_number("stack", stacks.line_of(object.context));
            break;
        }
        case Kind::kFile: {
            const std::string& path = profile.objects->path(object.file);
            group.name = base_name(path);
            add("file", path);
            break;
        }
        case Kind::kStack:
            group.name = object.thread < trace::kOwnSlots
                             ? fmt::format("stack of thread {}", object.thread + 1)
                             : "(stacks of later threads)";
            break;
        case Kind::kFrameVariable:
            group.parent = objects.number(object.stack);
            group.name = fmt::format("{}: {}", object.function, object.name);
            add_number("size", object.size);
            break;
        case Kind::kBreak:
            group.name = "(heap, outside of blocks)";
            break;
        case Kind::kUnknown:
            group.name = "(unknown)";
            break;
    }
    return group;
}

std::optional<events::Series> heap_series(const Profile& profile, const GroupLines& objects,
                                          std::span<const events::Group> groups) {
    const HeapCurve& heap = profile.objects->heap();
    const std::vector<HeapCurve::Point> points = heap.points();
    if (points.empty()) return std::nullopt;
    struct Site {
        std::string name;
        std::uint64_t peak = 0;
        std::vector<std::uint32_t> objects;
    };
    std::map<std::string_view, Site> by_name;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const std::uint32_t number = objects.groups()[i];
        const DataObject& object = profile.objects->objects()[number];
        if (object.kind != DataObject::Kind::kHeap) continue;
        Site& site = by_name[groups[i].name];
        site.name = groups[i].name;
        site.peak += object.peak;
        site.objects.push_back(number);
    }
    std::vector<Site> sites;
    for (auto& [name, site] : by_name) sites.push_back(std::move(site));
    std::stable_sort(sites.begin(), sites.end(),
                     [](const Site& a, const Site& b) { return a.peak > b.peak; });
    sites.resize(std::min(sites.size(), events::kMostSeriesColumns - 1));
    events::Series series{.name = "heap",
                          .description = "bytes of blocks of the heap in use, by allocation site",
                          .x = {"time", "instructions"},
                          .columns = {{"all", "bytes"}},
                          .numbers = {}};
    std::vector<std::vector<std::uint64_t>> columns;
    for (const Site& site : sites) {
        constexpr std::size_t kMostName = 400;
        series.columns.push_back({site.name.substr(0, kMostName), "bytes"});
        std::vector<std::uint64_t>& sum = columns.emplace_back(points.size());
        for (const std::uint32_t object : site.objects) {
            const std::vector<std::uint64_t> bytes = heap.of_site(object, points);
            std::transform(sum.begin(), sum.end(), bytes.begin(), sum.begin(), std::plus<>());
        }
    }
    for (std::size_t i = 0; i < points.size(); ++i) {
        series.numbers.insert(series.numbers.end(), {points[i].time, points[i].bytes});
        for (const std::vector<std::uint64_t>& column : columns)
            series.numbers.push_back(column[i]);
    }
    return series;
}

events::Group thread_group(const Profile& profile, const GroupLines& threads,
                           std::uint32_t thread) {
    events::Group group{threads.number(thread), 0, "thread", "(later threads)", {}};
    if (thread == ThreadContexts::kLater) return group;
    const auto name = profile.thread_names->find(thread);
    group.name = name == profile.thread_names->end() ? "???" : name->second;
    group.attributes.emplace_back("number", fmt::format("{}", thread + 1));
    return group;
}

void ReferencedTypes::find(const std::string& object_path, std::span<const std::uint64_t> addresses,
                           std::span<const std::uint32_t> rows) {
    data_references::MemberReferences object(object_path, tree_, symbols::kDebugRoot,
                                             symbols::ImageCache(profile_.debug_cache));
    const std::vector<data_references::MemberReference> found = object.find(addresses);
    for (std::size_t i = 0; i < rows.size(); ++i) references_[rows[i]] = found[i];
}

// An event does not count data if instructions without memory references have it, such as misses of
// an instruction cache. A small part is tolerated, because system calls also refer to memory.
std::vector<bool> ReferencedTypes::data_events() const {
    constexpr std::uint64_t kLeastPart = 10;
    std::vector<bool> of_data(profile_.columns.size());
    for (std::size_t event = 0; event < profile_.columns.size(); ++event) {
        if (!is_of_data(profile_.header.events[event].unit)) continue;
        std::uint64_t all = 0, without = 0;
        for (std::uint32_t row = 0; row < references_.size(); ++row) {
            const Kind kind = references_[row].kind;
            const std::uint64_t count =
                kind == Kind::kNone ? 0
                                    : profile_.counts->samples.counts(row)[profile_.columns[event]];
            all += count;
            if (kind == Kind::kNoMemory) without += count;
        }
        of_data[event] = without <= all / kLeastPart;
    }
    return of_data;
}

GroupLines ReferencedTypes::lines() {
    const std::vector<bool> of_data = data_events();
    std::vector<bool> leads(tree_.nodes().size());  // by node: true if a node below it has counts
    for (std::uint32_t row = 0; row < references_.size(); ++row) {
        if (references_[row].kind != Kind::kTyped || references_[row].node == 0) continue;
        for (std::size_t event = 0; event < of_data.size(); ++event) {
            const std::size_t column = profile_.columns[event];
            const std::uint64_t count =
                of_data[event] ? profile_.counts->samples.counts(row)[column] : 0;
            counts_.add(references_[row].node, row, column, count);
            if (count != 0) leads[references_[row].node] = true;
        }
    }
    std::vector<std::uint32_t> around;
    // The node of a part has a higher number than the nodes that contain it.
    for (auto node = static_cast<std::uint32_t>(leads.size()); node-- > 1;) {
        const std::uint32_t parent = tree_.nodes()[node].parent;
        if (!leads[node] || parent == 0) continue;
        leads[parent] = true;
        around.push_back(parent);
    }
    GroupLines lines(profile_, counts_);
    lines.add(around);
    return lines;
}

events::Group ReferencedTypes::group(const GroupLines& types, std::uint32_t number) const {
    const data_references::TypeNode& node = tree_.nodes()[number];
    events::Group group{types.number(number),
                        node.parent == 0 ? 0 : types.number(node.parent),
                        node.is_member ? "member" : "type",
                        node.name,
                        {}};
    const auto add = [&](const char* key, const auto& value) {
        group.attributes.emplace_back(key, fmt::format("{}", value));
    };
    if (node.is_member) {
        add("offset", node.offset);
        add("size", node.size);
        add("type", node.type);
        if (node.bits != 0) add("bits", fmt::format("{}:{}", node.first_bit, node.bits));
    } else {
        add("size", node.size);
        add("kind", node.kind);
        if (!node.file.empty()) add("file", node.file);
        if (node.line != 0) add("line", node.line);
    }
    return group;
}

std::string ReferencedTypes::coverage() const {
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

}  // namespace assay::collector
