#include "tools/annotate/groups.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::annotate {

namespace {

constexpr std::uint64_t kCacheLine = 64;  // bytes
constexpr std::size_t kMostCallers = 5;
constexpr std::size_t kMostLines = 8;

std::string bytes_text(std::uint64_t bytes) {
    return with_thousands(bytes) + (bytes == 1 ? " byte" : " bytes");
}

// When the object's blocks were allocated, in instructions.
std::string life_text(const Groups::Group& group) {
    const auto blocks = group.number("blocks"), first = group.number("first"),
               lifetimes = group.number("lifetimes"), touched = group.number("touched");
    if (!blocks || *blocks == 0 || !first || !lifetimes || !touched) return "";
    const auto last = group.number("last"), left = group.number("left");
    std::string text = fmt::format("from instruction {}", with_thousands(*first));
    if (last && !left) text += fmt::format(" to {}", with_thousands(*last));
    text += fmt::format(", {}lives {}", *blocks == 1 ? "" : "a block ",
                        with_thousands(*lifetimes / *blocks));
    if (*lifetimes != 0)
        text += fmt::format(", in use for {:.0f} % of that",
                            100 * static_cast<double>(*touched) / static_cast<double>(*lifetimes));
    if (const auto at_peak = group.number("at-peak"))
        text += fmt::format("; {} when the heap was largest", bytes_text(*at_peak));
    if (left) text += fmt::format("; {} left", bytes_text(*left));
    return text;
}

bool is_laid_out(const std::vector<Groups::Group>& groups,
                 const std::vector<std::uint32_t>& inner) {
    return !inner.empty() && std::all_of(inner.begin(), inner.end(), [&](std::uint32_t group) {
        return groups[group].number("offset").has_value();
    });
}

}  // namespace

std::vector<std::size_t> GroupTable::counted_events(const Groups& profile, std::string_view kind,
                                                    std::size_t events) {
    std::vector<std::size_t> counted;
    for (std::size_t event = 0; event < events; ++event)
        if (std::any_of(profile.groups().begin(), profile.groups().end(),
                        [&](const Groups::Group& group) {
                            return group.kind == kind && group.counts[event] != 0;
                        }))
            counted.push_back(event);
    return counted;
}

GroupTable::GroupTable(const Groups& profile, std::string_view kind, const Columns& columns,
                       const std::vector<SortColumn>& sort, const DisplayNames& names, bool lines,
                       const Extent& extent)
    : profile_(profile),
      kind_(kind),
      columns_(columns),
      sort_(sort),
      names_(names),
      lines_(lines),
      extent_(extent),
      rest_(columns.totals.begin(), columns.totals.end()) {
    const std::vector<Groups::Group>& groups = profile.groups();
    std::vector<std::uint32_t> outer;
    for (std::uint32_t i = 0; i < groups.size(); ++i) {
        if (groups[i].kind != kind) continue;
        if (groups[i].parent != Groups::kNone && groups[groups[i].parent].kind == kind) continue;
        outer.push_back(i);
        for (std::size_t event = 0; event < rest_.size(); ++event)
            rest_[event] -= groups[i].counts[event];
    }
    std::stable_sort(outer.begin(), outer.end(), [&](std::uint32_t a, std::uint32_t b) {
        return comes_first(groups[a].counts, groups[b].counts, sort, columns.header)
            .value_or(groups[a].name < groups[b].name);
    });
    for (const std::uint32_t group : outer) {
        if (!is_above_threshold(groups[group].counts, columns.totals, sort, columns.header))
            continue;
        shown_.push_back(group);
        add(group, 0);
    }
}

// "heap  make (a.c:12), 3 blocks of 24 bytes < main < ..."
std::string GroupTable::object_text(const Groups::Group& group) const {
    std::string text =
        fmt::format("{}  {}", padded(group.attribute("class"), 7), names_.of_group(group));
    const auto size = group.number("size"), blocks = group.number("blocks"),
               bytes = group.number("bytes");
    if (blocks && bytes && size)
        text += *blocks == 1 ? fmt::format(", {}", bytes_text(*size))
                             : fmt::format(", {} blocks of {}", *blocks, bytes_text(*size));
    else if (blocks && bytes)
        text += fmt::format(", {} blocks, {}", *blocks, bytes_text(*bytes));
    else if (size)
        text += fmt::format(", {}", bytes_text(*size));
    // The name begins with the caller in own code; those before it are of libraries. callers[0] is
    // the allocation function.
    std::size_t first = 2;
    for (std::size_t i = 1; i < group.callers.size(); ++i)
        if (group.name == group.callers[i] || group.name.starts_with(group.callers[i] + " (")) {
            first = i + 1;
            break;
        }
    const std::size_t end = std::min(first + kMostCallers - 2, group.callers.size());
    for (std::size_t i = first; i < end; ++i) text += " < " + names_(group.callers[i]);
    if (end < group.callers.size()) text += " < ...";
    return text;
}

// The row of a member that stands alone names its type: "Product.next".
std::string GroupTable::group_text(const Groups::Group& group, bool outermost) const {
    if (group.kind == "object") return object_text(group);
    if (group.kind == "thread" && group.number("number"))
        return fmt::format("{:3}  {}", *group.number("number"), group.name);
    std::string text = names_.of_group(group);
    if (outermost && group.kind == "member" && group.parent != Groups::kNone)
        text.insert(0, names_.of_group(profile_.groups()[group.parent]) + ".");
    if (!group.attribute("type").empty())
        text = fmt::format("{}  {}", text, names_.of_type(group.attribute("type")));
    if (!group.attribute("bits").empty()) text += fmt::format(" :{}", group.attribute("bits"));
    const auto size = group.number("size"), offset = group.number("offset");
    if (size && !offset) text += fmt::format(", {}", bytes_text(*size));
    if (size && offset) text = fmt::format("{:5} {:4}  {}", *offset, *size, text);
    return text;
}

void GroupTable::add(std::uint32_t number, std::size_t depth) {
    const Groups::Group& group = profile_.groups()[number];
    rows_.push_back({number, depth, group_text(group, depth == 0)});
    add_inner(group, depth + 1);
}

// Inner groups with offsets are sorted by offset, with the gaps between them. Other inner groups
// are sorted by counts.
void GroupTable::add_inner(const Groups::Group& group, std::size_t depth) {
    constexpr std::size_t kMostDepth = 16;
    const std::vector<Groups::Group>& groups = profile_.groups();
    std::vector<std::uint32_t> inner = group.inner;
    if (depth > kMostDepth) return;
    if (!is_laid_out(groups, inner)) {
        std::stable_sort(inner.begin(), inner.end(), [&](std::uint32_t a, std::uint32_t b) {
            return comes_first(groups[a].counts, groups[b].counts, sort_, columns_.header)
                .value_or(groups[a].name < groups[b].name);
        });
        for (const std::uint32_t each : inner)
            if (is_above_threshold(groups[each].counts, columns_.totals, sort_, columns_.header))
                add(each, depth);
        return;
    }
    const auto offset = [&](std::uint32_t each) { return *groups[each].number("offset"); };
    std::stable_sort(inner.begin(), inner.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return offset(a) < offset(b); });
    const std::uint64_t begin = group.number("offset").value_or(0);
    std::uint64_t end = begin;
    for (const std::uint32_t each : inner) {
        const std::uint64_t from = offset(each);
        add_gap(end, from, depth);
        if (depth == 1 && from / kCacheLine != 0 &&
            (end == begin || end / kCacheLine != from / kCacheLine || from % kCacheLine == 0))
            rows_.push_back({Groups::kNone, depth,
                             fmt::format("---------- line {} ----------", from / kCacheLine)});
        add(each, depth);
        end = std::max(end, from + groups[each].number("size").value_or(0));
    }
    if (const auto size = group.number("size")) add_gap(end, begin + *size, depth);
}

void GroupTable::add_gap(std::uint64_t from, std::uint64_t to, std::size_t depth) {
    if (from < to)
        rows_.push_back(
            {Groups::kNone, depth, fmt::format("{:5} {:4}  (no counts)", from, to - from)});
}

std::vector<Groups::Line> GroupTable::lines_of(std::uint32_t group) const {
    std::vector<Groups::Line> lines = profile_.lines(group);
    std::stable_sort(lines.begin(), lines.end(), [&](const Groups::Line& a, const Groups::Line& b) {
        return comes_first(a.counts, b.counts, sort_, columns_.header).value_or(false);
    });
    return lines;
}

std::string GroupTable::line_text(const Groups::Line& line) const {
    const std::string_view file = profile_.text(line.file);
    return fmt::format("{}:{} ({})", printable(file.substr(file.rfind('/') + 1)), line.line,
                       printable(names_(profile_.text(line.function))));
}

// The row, and with `lines_` the lines below it.
std::vector<std::string> GroupTable::text_of(const Row& row, const Table& table) const {
    const std::string text = std::string(2 * row.depth, ' ') + printable(row.text);
    if (row.group == Groups::kNone) return {table.empty_row(text)};
    const Groups::Group& group = profile_.groups()[row.group];
    std::vector<std::string> all = {table.row(group.counts, text)};
    if (!lines_) return all;
    const std::string indentation(2 * row.depth + 4, ' ');
    if (const std::string life = life_text(group); !life.empty())
        all.push_back(table.empty_row(indentation + life));
    const std::vector<Groups::Line> lines = lines_of(row.group);
    for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
        all.push_back(table.row(lines[i].counts, indentation + line_text(lines[i])));
    if (lines.size() > kMostLines)
        all.push_back(
            table.empty_row(fmt::format("{}and {} more", indentation, lines.size() - kMostLines)));
    return all;
}

void GroupTable::write(Output& output) const {
    Table table(columns_);
    for (const Row& row : rows_) {
        if (row.group == Groups::kNone) continue;
        table.fit(profile_.groups()[row.group].counts);
    }
    table.fit(rest_);
    if (extent_.full) output.section(fmt::format("By {}", kind_));
    output.write(table.heading(kind_));
    std::size_t shown = 0, lines = 0;
    for (const Row& row : rows_) {
        const std::vector<std::string> text = text_of(row, table);
        lines += text.size();
        if (shown == extent_.rows || (lines > extent_.lines && shown != 0)) break;
        ++shown;
        for (const std::string& line : text) output.write(line);
    }
    if (any_count(rest_)) output.write(table.row(rest_, "(none)"));
    if (rows_.empty()) output.write("  none is above the threshold\n");
    write_left_out(rows_.size() - shown, output);
    output.write("\n");
}

void GroupTable::write_json(std::uint32_t number, JsonWriter& json) const {
    const Groups::Group& group = profile_.groups()[number];
    json.begin_object();
    json.text("kind", group.kind);
    json.text("name", group.name);
    json.begin_object("attributes");
    for (const auto& [key, value] : group.attributes)
        if (key != "stack" && key != "binary") json.text(key, value);
    json.end_object();
    json.texts("callers", group.callers);
    write_counts("counts", columns_.header, columns_.shown, group.counts, json);
    json.objects("lines", lines_of(number), [&](const Groups::Line& line) {
        json.text("file", profile_.text(line.file));
        json.text("function", profile_.text(line.function));
        json.number("line", line.line);
        write_counts("counts", columns_.header, columns_.shown, line.counts, json);
    });
    json.begin_array("inner");
    for (const std::uint32_t inner : group.inner) write_json(inner, json);
    json.end_array();
    json.end_object();
}

void GroupTable::write_json(JsonWriter& json) const {
    json.begin_array("groups");
    for (const std::uint32_t group : shown_) write_json(group, json);
    json.end_array();
}

}  // namespace assay::annotate
