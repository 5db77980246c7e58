#include "framework/collector/results/object_groups.h"

#include <fmt/core.h>
#include <algorithm>
#include <tuple>

namespace assay::collector {
namespace {

using Kind = DataObject::Kind;

std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

std::string_view class_of(const DataObject& object) {
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

bool was_allocated(const DataObject& object) {
    return object.kind == Kind::kHeap || object.kind == Kind::kMapping;
}

}  // namespace

ObjectGroups::ObjectGroups(const Profile& profile)
    : profile_(profile), events_(profile.samples->columns(), SIZE_MAX) {
    if (profile.objects == nullptr) return;
    for (std::size_t i = 0; i < profile.columns.size(); ++i) events_[profile.columns[i]] = i;
    const auto has_counts = [&](std::uint32_t row) {
        bool any = false;
        profile.object_counts->each_count(row, [&](std::size_t column, std::uint64_t count) {
            any |= events_[column] != SIZE_MAX && count != 0;
        });
        return any;
    };
    groups_.resize(profile.objects->objects().size());
    for (ContextCounts::Row row : profile.object_counts->sorted_rows()) {
        if (row.instruction == ContextCounts::kAnyRow || !has_counts(row.number)) continue;
        row.context = profile.objects->final_number(row.context);
        groups_[row.context] = 1;
        const DataObject& object = profile.objects->objects()[row.context];
        if (object.kind == Kind::kFrameVariable) groups_[object.stack] = 1;
        rows_.push_back(row);
    }
    for (std::uint32_t object = 0; object < groups_.size(); ++object) {
        if (groups_[object] == 0) continue;
        objects_.push_back(object);
        groups_[object] = static_cast<std::uint32_t>(objects_.size());
    }
    std::sort(rows_.begin(), rows_.end(),
              [](const ContextCounts::Row& a, const ContextCounts::Row& b) {
                  return std::tie(a.instruction, a.context, a.number) <
                         std::tie(b.instruction, b.context, b.number);
              });
    first_of_row_.assign(profile.samples->rows() + 1, 0);
    for (const ContextCounts::Row& row : rows_) ++first_of_row_[row.instruction + 1];
    for (std::size_t i = 1; i < first_of_row_.size(); ++i) first_of_row_[i] += first_of_row_[i - 1];
    sums_.resize(objects_.size() * profile.columns.size());
}

std::vector<std::uint32_t> ObjectGroups::contexts() const {
    std::vector<std::uint32_t> contexts;
    for (const std::uint32_t number : objects_) {
        const DataObject& object = profile_.objects->objects()[number];
        if (was_allocated(object) && object.context != 0) contexts.push_back(object.context);
    }
    std::sort(contexts.begin(), contexts.end());
    contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
    return contexts;
}

events::Group ObjectGroups::group_of(std::uint32_t number, const Surroundings& around) const {
    const DataObject& object = profile_.objects->objects()[number];
    events::Group group{groups_[number], 0, "object", {}, {}};
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
            const std::string& path = profile_.objects->path(object.file);
            group.name = object.symbol->name;
            if (object.symbol->is_section)
                group.name = fmt::format("{} of {}", group.name, base_name(path));
            add_number("size", object.size);
            if (!object.symbol->type.empty()) add("type", object.symbol->type);
            add("binary", around.binary(path));
            break;
        }
        case Kind::kHeap:
        case Kind::kMapping: {
            if (object.context != 0) {
                const symbols::Frame caller = around.caller(object.context);
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
            if (object.context != 0) add_number("stack", around.stack(object.context));
            break;
        }
        case Kind::kFile: {
            const std::string& path = profile_.objects->path(object.file);
            group.name = base_name(path);
            add("file", path);
            break;
        }
        case Kind::kStack:
            group.name = fmt::format("stack of thread {}", object.thread + 1);
            break;
        case Kind::kFrameVariable:
            group.parent = groups_[object.stack];
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

std::vector<events::Group> ObjectGroups::groups(const Surroundings& around) const {
    std::vector<events::Group> groups;
    for (const std::uint32_t object : objects_) groups.push_back(group_of(object, around));
    return groups;
}

void ObjectGroups::write_line(events::Writer& writer, std::span<const std::uint32_t> rows) {
    if (rows_.empty()) return;
    const std::size_t columns = profile_.columns.size();
    touched_.clear();
    for (const std::uint32_t row : rows)
        for (std::uint32_t i = first_of_row_[row]; i < first_of_row_[row + 1]; ++i) {
            const std::uint32_t group = groups_[rows_[i].context] - 1;
            touched_.push_back(group);
            profile_.object_counts->each_count(
                rows_[i].number, [&](std::size_t column, std::uint64_t count) {
                    if (events_[column] != SIZE_MAX)
                        sums_[group * columns + events_[column]] += count;
                });
        }
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::uint32_t group : touched_) {
        const std::span<std::uint64_t> sums = std::span(sums_).subspan(group * columns, columns);
        writer.counts_of(group + 1, sums);
        std::fill(sums.begin(), sums.end(), 0);
    }
}

}  // namespace assay::collector
