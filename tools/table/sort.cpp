#include "tools/table/sort.h"

#include "framework/support/error.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <utility>

namespace assay {

namespace {

// A larger share than this hides functions that matter; it is more likely meant as the share of
// all functions together, as the option was understood by Cachegrind before 3.1.
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
        // Names of other programs' events can have a colon, as cycles:u.
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
        // Where a profile has as much as the other, every function that differs matters.
        if (*column.percent > 0 && header.difference && counts[column.event] == 0) return false;
        return magnitude(counts[column.event], header) * 100 >=
               *column.percent * magnitude(totals[column.event], header);
    });
}

}  // namespace assay
