#include "tools/table/table.h"

#include "framework/events/formula.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/output/output.h"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace assay {
namespace {

// A larger threshold hides functions that matter. Users probably mean the share of all shown
// functions together, as Cachegrind before 3.1 understood the option.
constexpr double kLargestThreshold = 20;

}  // namespace

double parse_threshold(std::string_view option, std::string_view text) {
    std::string_view digits = text;
    if (digits.ends_with('%')) digits.remove_suffix(1);
    double value = -1;
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc() || rest != end || !(value >= 0 && value <= kLargestThreshold))
        throw Error(
            fmt::format("{} {}: give the smallest percentage that a function must have, 0 to {}",
                        option, text, kLargestThreshold));
    return value;
}

std::vector<SortEvent> parse_sort(const std::vector<std::string>& words) {
    std::vector<SortEvent> events;
    for (const std::string& word : words) {
        const std::size_t colon = word.rfind(':');
        // Events of other programs can have a colon in their name: cycles:u.
        const bool has_threshold =
            colon != std::string::npos &&
            word.find_first_of("0123456789.", colon + 1) == word.find_first_not_of("+-", colon + 1);
        SortEvent event{has_threshold ? word.substr(0, colon) : word, std::nullopt};
        if (has_threshold)
            event.threshold = parse_threshold("--sort " + event.name, word.substr(colon + 1));
        events.push_back(std::move(event));
    }
    return events;
}

std::vector<SortColumn> sort_columns(const std::vector<SortEvent>& events, double threshold,
                                     const events::Header& header) {
    std::vector<SortColumn> columns;
    columns.reserve(std::max(events.size(), header.events.size()));
    for (const SortEvent& event : events)
        columns.push_back({event_index("--sort", event.name, header), event.threshold});
    for (std::size_t i = 0; events.empty() && i < header.events.size(); ++i)
        columns.push_back({i, std::nullopt});
    const bool any = std::any_of(columns.begin(), columns.end(), [](const SortColumn& column) {
        return column.percent.has_value();
    });
    if (!any) columns.front().percent = threshold;
    return columns;
}

std::optional<bool> comes_first(Counts a, Counts b, const std::vector<SortColumn>& sort,
                                const events::Header& header) {
    const auto size = [&](std::uint64_t count) {
        return header.difference && count >> 63 != 0 ? 0 - count : count;
    };
    for (const SortColumn& column : sort)
        if (size(a[column.event]) != size(b[column.event]))
            return size(a[column.event]) > size(b[column.event]);
    return std::nullopt;
}

bool is_above_threshold(Counts counts, Counts totals, const std::vector<SortColumn>& sort,
                        const events::Header& header) {
    return std::any_of(sort.begin(), sort.end(), [&](const SortColumn& column) {
        if (!column.percent) return false;
        // If the totals of both profiles are equal, every function that differs matters.
        if (*column.percent > 0 && header.difference && counts[column.event] == 0) return false;
        return magnitude(counts[column.event], header) * 100 >=
               *column.percent * magnitude(totals[column.event], header);
    });
}

namespace {

// Colours by share of the event's total: SGR sequences of ECMA-48.
constexpr std::string_view kHot = "\033[1;31m", kWarm = "\033[31m", kPlain = "\033[0m";
constexpr double kHotPercent = 10, kWarmPercent = 1;

double real(std::uint64_t count, const events::Header& header) {
    return header.difference ? static_cast<double>(static_cast<std::int64_t>(count))
                             : static_cast<double>(count);
}

// A whole figure, such as a sum of counts, looks like a count.
std::string plain_number(double value) {
    constexpr double kLargestExact = 0x1p53;
    if (value != std::trunc(value) || std::abs(value) > kLargestExact)
        return fmt::format("{:.3f}", value);
    const auto size = static_cast<unsigned long long>(std::abs(value));
    return (value < 0 ? "-" : "") + with_thousands(size);
}

}  // namespace

std::vector<std::string> event_names(const events::Header& header) {
    std::vector<std::string> names;
    for (const events::Event& event : header.events) names.push_back(event.name);
    return names;
}

namespace {

std::size_t index_of(std::string_view option, const std::string& name,
                     const std::vector<std::string>& names) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    const std::string near = nearest(name, names);
    throw Error(fmt::format("{}: the profile has no event '{}'; it has {}{}", option, name,
                            join(names, ", "),
                            near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

}  // namespace

std::size_t event_index(std::string_view option, const std::string& name,
                        const events::Header& header) {
    return index_of(option, name, event_names(header));
}

std::vector<std::size_t> shown_events(const std::vector<std::string>& show,
                                      const events::Header& header) {
    std::vector<std::string> names = event_names(header);
    if (show.empty()) {
        std::vector<std::size_t> all(names.size());
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
    for (const events::Derived& derived : header.derived) names.push_back(derived.name);
    std::vector<std::size_t> shown;
    for (const std::string& name : show) {
        shown.push_back(index_of("--show", name, names));
        if (shown.back() >= header.events.size() && header.difference)
            throw Error(
                fmt::format("--show: '{}' is calculated from counts and has no meaning for "
                            "differences; show events",
                            name));
    }
    return shown;
}

std::string shown_name(std::size_t column, const events::Header& header) {
    const std::size_t events = header.events.size();
    return column < events ? header.events[column].name : header.derived[column - events].name;
}

std::string count_text(std::uint64_t count, const events::Header& header) {
    if (!header.difference || count >> 63 == 0) return with_thousands(count);
    return "-" + with_thousands(0 - count);
}

std::string figure_text(double value, std::string_view unit) {
    if (unit == "%") return fmt::format("{:.2f}%", value * 100);
    return fmt::format("{}{}{}", plain_number(value), unit.empty() ? "" : " ", unit);
}

std::string derived_text(const events::Derived& derived, const events::Formula& formula,
                         Counts counts) {
    const std::optional<double> value = formula.value(counts);
    return value ? figure_text(*value, derived.unit) : "none";
}

double magnitude(std::uint64_t count, const events::Header& header) {
    return std::abs(real(count, header));
}

// --- Table

Table::Table(const Columns& columns) : columns_(columns) {
    for (const std::size_t column : columns.shown)
        widths_.push_back({shown_name(column, columns.header).size(), 0, 0});
    const auto is_derived = [&](std::size_t column) {
        return column >= columns.header.events.size();
    };
    if (!std::any_of(columns.shown.begin(), columns.shown.end(), is_derived)) return;
    for (const events::Derived& derived : columns.header.derived)
        formulas_.emplace_back(derived.formula, columns.header.events);
}

Table::Cell Table::cell(std::size_t column, Counts counts, Counts running) const {
    const events::Header& header = columns_.header;
    if (column >= header.events.size()) {
        const std::size_t derived = column - header.events.size();
        events::Derived without_unit = header.derived[derived];
        if (without_unit.unit != "%") without_unit.unit.clear();
        const std::string text = derived_text(without_unit, formulas_[derived], counts);
        return {text == "none" ? "-" : text, "", ""};
    }
    Cell cell = {count_text(counts[column], header), "", ""};
    if (columns_.cells == Cells::kCounts) return cell;
    // A percentage of 0 would only be clutter.
    if (counts[column] == 0)
        return columns_.cells == Cells::kShares ? Cell{".", "", ""} : std::move(cell);
    const double total = real(columns_.totals[column], header);
    const auto percent = [&](std::uint64_t count) {
        return total == 0 ? "n/a" : fmt::format("{:.1f}%", 100 * real(count, header) / total);
    };
    if (columns_.cells == Cells::kShares) return {percent(counts[column]), "", ""};
    cell.percentage = " (" + percent(counts[column]);
    cell.rest = running.empty() ? ")" : ", " + percent(running[column]) + ")";
    return cell;
}

void Table::fit(Counts counts, Counts running) {
    for (std::size_t i = 0; i < widths_.size(); ++i) {
        const Cell text = cell(columns_.shown[i], counts, running);
        widths_[i].count = std::max(widths_[i].count, text.count.size());
        widths_[i].percentage = std::max(widths_[i].percentage, text.percentage.size());
        widths_[i].rest = std::max(widths_[i].rest, text.rest.size());
    }
}

std::string Table::heading(std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < widths_.size(); ++i)
        out += fmt::format("{:>{}}{:<{}}  ", shown_name(columns_.shown[i], columns_.header),
                           widths_[i].count, "", widths_[i].percentage + widths_[i].rest);
    if (text.empty()) out.erase(out.find_last_not_of(' ') + 1);
    return out.append(text).append("\n");
}

std::string Table::row(Counts counts, std::string_view text, Counts running) const {
    std::string out;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
        const Cell texts = cell(columns_.shown[i], counts, running);
        const std::string_view highlight = color(columns_.shown[i], counts);
        out += highlight;
        out += fmt::format("{:>{}}{:>{}}", texts.count, widths_[i].count, texts.percentage,
                           widths_[i].percentage);
        out += padded(texts.rest, widths_[i].rest);
        if (!highlight.empty()) out += kPlain;
        out += "  ";
    }
    return with_text(std::move(out), text);
}

std::string Table::empty_row(std::string_view text) const {
    std::string out;
    for (const Width& width : widths_)
        out.append(width.count - 1, ' ').append(".").append(width.percentage + width.rest + 2, ' ');
    return with_text(std::move(out), text);
}

std::size_t Table::text_width() const {
    std::size_t cells = 0;
    for (const Width& width : widths_) cells += width.count + width.percentage + width.rest + 2;
    constexpr std::size_t kLeast = 20;  // on a narrow terminal
    if (columns_.width == 0) return std::numeric_limits<std::size_t>::max();
    return std::max(columns_.width, cells + kLeast) - cells;
}

std::string Table::with_text(std::string cells, std::string_view text) const {
    cells.append(first_characters(text, text_width())).append("\n");
    return cells;
}

std::string_view Table::color(std::size_t column, Counts counts) const {
    if (!columns_.color || column >= columns_.header.events.size()) return {};
    const double total = magnitude(columns_.totals[column], columns_.header);
    const double percent =
        total == 0 ? 0 : 100 * magnitude(counts[column], columns_.header) / total;
    return percent >= kHotPercent ? kHot : percent >= kWarmPercent ? kWarm : std::string_view();
}

void write_event_list(const events::Header& header, const std::vector<std::size_t>& shown,
                      JsonWriter& json) {
    json.objects("events", shown, [&](const std::size_t column) {
        json.text("name", shown_name(column, header));
        const std::size_t events = header.events.size();
        json.text("unit", column < events ? header.events[column].unit
                                          : header.derived[column - events].unit);
        if (column < events) json.text("description", header.events[column].description);
    });
}

void write_counts(std::string_view key, const events::Header& header,
                  const std::vector<std::size_t>& shown, Counts counts, JsonWriter& json) {
    json.begin_array(key);
    for (const std::size_t column : shown) {
        const std::size_t events = header.events.size();
        if (column < events && header.difference) {
            json.literal(std::to_string(static_cast<std::int64_t>(counts[column])));
        } else if (column < events) {
            json.number(counts[column]);
        } else {
            const events::Formula formula(header.derived[column - events].formula, header.events);
            json.real(formula.value(counts));
        }
    }
    json.end_array();
}

}  // namespace assay
