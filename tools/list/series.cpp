#include "tools/list/series.h"

#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <string_view>
#include <vector>

namespace assay::list {

namespace {

// What it is of, but for all threads and phases.
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
        add("Points:", fmt::format("each stands for {} neighbours, with the largest numbers",
                                   with_thousands(series.each)));
    return text;
}

}  // namespace

void write_series(const events::Series& series, Output& output) {
    output.section(fmt::format("Series: {}", printable(series.name)));
    if (!series.description.empty()) output.write(printable(series.description) + "\n");
    output.write(of_what(series) + "\n");
    std::vector<std::string> names{printable(series.x.name)}, units{printable(series.x.unit)};
    for (const events::Axis& column : series.columns) {
        names.push_back(printable(column.name));
        units.push_back(printable(column.unit));
    }
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < series.width(); ++i) {
        if (units[i] == names[i]) units[i].clear();  // as misses of misses
        if (!units[i].empty()) units[i] = "(" + units[i] + ")";
        std::size_t width = std::max(names[i].size(), units[i].size());
        for (std::size_t point = 0; point < series.points(); ++point)
            width =
                std::max(width, with_thousands(series.numbers[point * series.width() + i]).size());
        widths.push_back(width);
    }
    const auto write_row = [&](const auto& text_of) {
        std::string row;
        for (std::size_t i = 0; i < series.width(); ++i)
            row += fmt::format("{}{:>{}}", i == 0 ? "" : "  ", text_of(i), widths[i]);
        row.erase(row.find_last_not_of(' ') + 1);
        output.write(row + "\n");
    };
    write_row([&](std::size_t i) { return names[i]; });
    if (std::any_of(units.begin(), units.end(), [](const auto& unit) { return !unit.empty(); }))
        write_row([&](std::size_t i) { return units[i]; });
    for (std::size_t point = 0; point < series.points(); ++point)
        write_row([&](std::size_t i) {
            return with_thousands(series.numbers[point * series.width() + i]);
        });
    output.write("\n");
}

void list_series(const std::string& path, Output& output) {
    events::Handler ignore;
    const events::Header header = events::read_events(path, ignore).header;
    if (header.series.empty())
        throw Error(
            fmt::format("{} has no series: profile with --plugin=reuse or "
                        "--plugin=working_set",
                        path));
    for (const events::Series& series : header.series) write_series(series, output);
    output.finish();
}

}  // namespace assay::list
