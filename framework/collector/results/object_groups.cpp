#include "framework/collector/results/object_groups.h"

#include "framework/collector/results/sample_database.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::collector {

ObjectShares::ObjectShares(std::span<const ReferencedObjects::Count> references,
                           const CodeTables& code, std::span<const std::uint32_t> rows) {
    for (const ReferencedObjects::Count& count : references) {
        const trace_site_t& site = code.sites[count.site];
        const std::uint32_t row = rows[site.instr];
        if (row == SampleDatabase::kNoRow) continue;
        for (References* to : {&of_rows_[row], &of_objects_[{row, count.object}]})
            (site.kind == TRACE_SITE_READ    ? to->reads
             : site.kind == TRACE_SITE_WRITE ? to->writes
                                             : to->modifications) += count.references;
    }
}

std::optional<ObjectShares::Share> ObjectShares::find(std::uint32_t row,
                                                      std::uint64_t count) const {
    if (count == 0) return std::nullopt;
    const std::array<std::uint64_t, 5> all = of_rows_.at(row).sums();
    for (const std::uint64_t times : {1U, 2U}) {
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](std::uint64_t sum) { return sum * times == count; });
        if (found != all.end()) return Share{static_cast<std::size_t>(found - all.begin()), times};
    }
    return std::nullopt;
}

namespace {

using Kind = DataObject::Kind;

constexpr std::uint32_t kFirst = 1;  // group in the file

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

// A frame's variable is in the stack, which has a group for that.
ObjectGroups::ObjectGroups(const Profile& profile) : profile_(profile) {
    if (profile.objects == nullptr) return;
    counts_.emplace(GroupedCounts::Source{
        *profile.object_counts, profile.samples->rows(), profile.samples->columns(),
        profile.columns,
        [&](std::uint32_t object) { return profile.objects->final_number(object); }});
    std::vector<std::uint32_t> stacks;
    for (const std::uint32_t number : counts_->numbers()) {
        const DataObject& object = profile.objects->objects()[number];
        if (object.kind == Kind::kFrameVariable) stacks.push_back(object.stack);
    }
    counts_->add_numbers(stacks);
}

std::span<const std::uint32_t> ObjectGroups::objects() const {
    if (!counts_) return {};
    return counts_->numbers();
}

std::vector<std::uint32_t> ObjectGroups::contexts() const {
    std::vector<std::uint32_t> contexts;
    for (const std::uint32_t number : objects()) {
        const DataObject& object = profile_.objects->objects()[number];
        if (was_allocated(object) && object.context != 0) contexts.push_back(object.context);
    }
    std::sort(contexts.begin(), contexts.end());
    contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
    return contexts;
}

events::Group ObjectGroups::group_of(std::uint32_t number, const Surroundings& around) const {
    const DataObject& object = profile_.objects->objects()[number];
    events::Group group{kFirst + counts_->group(number), 0, "object", {}, {}};
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
            add_number("left", object.live);
            if (object.blocks != 0) add("first", object.first);
            add_number("last", object.last);
            if (object.kind == Kind::kHeap && object.blocks != 0) {
                add("lifetimes", object.lifetimes);
                add("touched", object.touched);
            }
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
            group.name = object.thread < trace::kOwnSlots
                             ? fmt::format("stack of thread {}", object.thread + 1)
                             : "(stacks of later threads)";
            break;
        case Kind::kFrameVariable:
            group.parent = kFirst + counts_->group(object.stack);
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
    for (const std::uint32_t object : objects()) groups.push_back(group_of(object, around));
    return groups;
}

void ObjectGroups::write_line(events::Writer& writer, std::span<const std::uint32_t> rows) {
    if (counts_) counts_->write_line(writer, rows, kFirst);
}

}  // namespace assay::collector
