#include "tools/annotate_table.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>

namespace assay::annotate {

namespace {

// Colours by share of the event's total: SGR sequences of ECMA-48.
constexpr std::string_view kHot = "\033[1;31m", kWarm = "\033[33m", kPlain = "\033[0m";
constexpr double kHotPercent = 10, kWarmPercent = 1;

double percent_of(std::uint64_t count, std::uint64_t total) {
    return total == 0 ? 0 : 100.0 * static_cast<double>(count) / static_cast<double>(total);
}

// Empty for 0: only clutter.
std::string percentage(std::uint64_t count, std::uint64_t total) {
    return count == 0 ? std::string() : fmt::format(" ({:.1f}%)", percent_of(count, total));
}

}  // namespace

std::vector<std::string> event_names(const events::Header& header) {
    std::vector<std::string> names;
    for (const events::Event& event : header.events) names.push_back(event.name);
    return names;
}

std::size_t event_index(std::string_view option, const std::string& name,
                        const events::Header& header) {
    const std::vector<std::string> names = event_names(header);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    const std::string near = nearest(name, names);
    throw Error(fmt::format("{}: the profile has no event '{}'; it has {}{}", option, name,
                            join(names, " "),
                            near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

std::vector<std::size_t> shown_events(const std::vector<std::string>& show,
                                      const events::Header& header) {
    std::vector<std::size_t> shown(show.size());
    std::transform(show.begin(), show.end(), shown.begin(),
                   [&](const std::string& name) { return event_index("--show", name, header); });
    if (!shown.empty()) return shown;
    shown.resize(header.events.size());
    std::iota(shown.begin(), shown.end(), 0);
    return shown;
}

Table::Table(const Columns& columns) : columns_(columns) {
    for (const std::size_t event : columns.shown)
        widths_.push_back({columns.header.events[event].name.size(), 0});
}

void Table::fit(Counts counts) {
    for (std::size_t i = 0; i < widths_.size(); ++i) {
        const std::size_t event = columns_.shown[i];
        widths_[i].count = std::max(widths_[i].count, with_thousands(counts[event]).size());
        if (columns_.percentages)
            widths_[i].percentage = std::max(
                widths_[i].percentage, percentage(counts[event], columns_.totals[event]).size());
    }
}

std::string Table::heading(std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < widths_.size(); ++i)
        out += fmt::format("{:>{}}{:<{}}  ", columns_.header.events[columns_.shown[i]].name,
                           widths_[i].count, "", widths_[i].percentage);
    if (text.empty()) out.erase(out.find_last_not_of(' ') + 1);
    return out.append(text).append("\n");
}

std::string Table::row(Counts counts, std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < widths_.size(); ++i) append_cell(out, i, counts[columns_.shown[i]]);
    return out.append(text).append("\n");
}

std::string Table::empty_row(std::string_view text) const {
    std::string out;
    for (const Width& width : widths_)
        out.append(width.count - 1, ' ').append(".").append(width.percentage + 2, ' ');
    return out.append(text).append("\n");
}

void Table::append_cell(std::string& out, std::size_t column, std::uint64_t count) const {
    const std::uint64_t total = columns_.totals[columns_.shown[column]];
    const double percent = percent_of(count, total);
    const std::string_view color = !columns_.color           ? std::string_view()
                                   : percent >= kHotPercent  ? kHot
                                   : percent >= kWarmPercent ? kWarm
                                                             : std::string_view();
    out += color;
    out += fmt::format("{:>{}}", with_thousands(count), widths_[column].count);
    if (columns_.percentages)
        out += fmt::format("{:>{}}", percentage(count, total), widths_[column].percentage);
    if (!color.empty()) out += kPlain;
    out += "  ";
}

}  // namespace assay::annotate
