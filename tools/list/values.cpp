#include "tools/list/values.h"

#include "framework/collector/hosted/hosted_profiler.h"
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace assay::list {
namespace {

constexpr std::chrono::seconds kLimit{10};  // of a profiler's function

std::string_view profiler_name(std::string_view list) {
    return list.substr(0, list.find('.'));
}

// The profiler's name for one of its lists; "" if it keeps only one list for an instruction.
std::string_view list_name(std::string_view list) {
    const std::size_t point = list.find('.');
    return point == std::string_view::npos ? std::string_view() : list.substr(point + 1);
}

// The name comes from the file, which anybody may have written. A path is refused, because its code
// would run here.
std::string find_by_name(std::string_view name, collector::CrashGuard& guard) {
    if (name.find('/') != std::string_view::npos)
        throw Error(fmt::format("{} is a path; if you trust it, load it with --plugin", name));
    return collector::find_profiler(std::string(name), guard);
}

double percent(std::uint64_t count, std::uint64_t total) {
    return 100.0 * static_cast<double>(count) /
           static_cast<double>(std::max<std::uint64_t>(total, 1));
}

}  // namespace

ValuePrinter::ValuePrinter(const std::vector<std::string_view>& lists,
                           const std::vector<std::string>& plugins, std::size_t most)
    : most_(most) {
    guard_.set_limit(kLimit);
    for (const std::string& plugin : plugins)
        profilers_.push_back(
            collector::load_profiler(collector::find_profiler(plugin, guard_), "", guard_));
    std::set<std::string_view> missing;
    for (const std::string_view list : lists)
        if (!profiler_of(list)) missing.insert(profiler_name(list));
    for (const std::string_view name : missing) {
        try {
            profilers_.push_back(collector::load_profiler(find_by_name(name, guard_), "", guard_));
        } catch (const Error& error) {
            notes_.push_back(fmt::format("values are shown as numbers: {}", error.what()));
        }
    }
    for (const auto& profiler : profilers_) profiler->has_no_columns_to_lose();
}

collector::ProfilerHandle* ValuePrinter::profiler_of(std::string_view list) const {
    const auto found =
        std::find_if(profilers_.begin(), profilers_.end(), [&](const auto& profiler) {
            return profiler->name() == profiler_name(list) && !profiler->lost();
        });
    return found == profilers_.end() ? nullptr : found->get();
}

std::vector<std::string> ValuePrinter::print(std::span<const Profile::Values* const> lists,
                                             const trace_instr_t* instr, std::size_t width) {
    std::vector<std::string> lines;
    for (const Profile::Values* each : lists) {
        const events::Hotlist* const list = &each->list;
        collector::ProfilerHandle* const profiler = instr ? profiler_of(list->name) : nullptr;
        std::string text(list->name);
        if (profiler && profiler->has_preface()) {
            const std::optional<std::string> preface =
                profiler->preface(*instr, list_name(list->name));
            if (!preface && !profiler->lost()) continue;
            if (preface) text = *preface;
        }
        text += ':';
        std::string end = fmt::format(" of {}", with_thousands(list->total));
        if (list->error != 0)
            end += fmt::format(", each up to {} more", with_thousands(list->error));
        for (std::size_t i = 0; i < std::min(most_, list->values.size()); ++i) {
            const events::HotValue& hot = list->values[i];
            std::optional<std::string> value;
            if (profiler) value = profiler->format(*instr, hot.value);
            const std::string next =
                fmt::format(" {} ({:.1f}%)", value ? *value : fmt::format("{:#x}", hot.value),
                            percent(hot.count, list->total));
            if (i != 0 && text.size() + next.size() + end.size() > width) break;
            text += next;
        }
        lines.push_back(text + end);
    }
    return lines;
}

namespace {

// Describes a series: its axes, and its thread and phase if it has them.
std::string of_what(const events::Series& series) {
    std::string text;
    const auto add = [&](std::string_view name, std::string_view value) {
        if (!value.empty()) text += fmt::format("{:<10}{}\n", name, printable(value));
    };
    add("Profiler:", series.profiler);
    add("Thread:", series.thread == 0 ? "" : std::to_string(series.thread));
    add("Phase:", series.phase);
    add("From:", series.from);
    if (series.each != 1)
        add("Points:",
            fmt::format("each row combines {} neighbours and shows their largest numbers",
                        with_thousands(series.each)));
    return text;
}

}  // namespace

void write_series(const events::Series& series, const DisplayNames& names, Output& output) {
    output.section(fmt::format("Series: {}", printable(series.name)));
    if (!series.description.empty()) output.write(printable(series.description) + "\n");
    output.write(of_what(series) + "\n");
    std::vector<std::vector<std::string>> rows(2);  // names, units
    const bool is_heap = series.profiler.empty();   // its columns are sites of allocations
    const auto add_axis = [&](const events::Axis& axis) {
        const std::string name = printable(is_heap ? names.of_site(axis.name) : axis.name),
                          unit = printable(axis.unit);
        rows[0].push_back(name);
        // Not twice, as misses of misses.
        rows[1].push_back(unit.empty() || unit == name ? "" : "(" + unit + ")");
    };
    add_axis(series.x);
    for (const events::Axis& column : series.columns) add_axis(column);
    if (std::all_of(rows[1].begin(), rows[1].end(), [](const auto& unit) { return unit.empty(); }))
        rows.pop_back();
    for (std::size_t point = 0; point < series.points(); ++point) {
        std::vector<std::string>& row = rows.emplace_back();
        for (std::size_t i = 0; i < series.width(); ++i)
            row.push_back(with_thousands(series.numbers[point * series.width() + i]));
    }
    output.write(aligned(rows, 0));
    output.write("\n");
}

void list_series(const std::string& path, NameStyle style, Output& output) {
    events::Handler ignore;
    const events::Header header = events::read_events(path, ignore).header;
    if (header.series.empty())
        throw Error(
            fmt::format("{} has no series: profile with --plugin=reuse or "
                        "--plugin=working_set",
                        path));
    DisplayNames names(style);
    names.finish();
    for (const events::Series& series : header.series) write_series(series, names, output);
    output.finish();
}

}  // namespace assay::list
