#include "tools/table/brief.h"

#include "framework/events/formula.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace assay {

std::vector<std::size_t> important_events(std::size_t first, const events::Header& header,
                                          Counts totals) {
    constexpr double kMatters = 4;
    constexpr std::size_t kMost = 6;
    std::vector<std::pair<double, std::size_t>> others;  // cost, event
    const std::string& formula = header.events.front().formula;
    for (std::size_t event = 0; event < header.events.size(); ++event) {
        double cost = totals[event] != 0 ? 100 : 0;
        if (!formula.empty() && event != 0) {
            std::vector<std::uint64_t> only(totals.size());
            only[event] = totals[event];
            cost = 100 * events::Formula(formula, header.events).value(only).value_or(0) /
                   magnitude(totals[0], header);
        }
        if (event != first && std::abs(cost) >= kMatters)
            others.emplace_back(std::abs(cost), event);
    }
    if (others.size() >= kMost) {
        std::stable_sort(others.begin(), others.end(),
                         [](const auto& a, const auto& b) { return a.first > b.first; });
        others.resize(kMost - 1);
    }
    std::vector<std::size_t> shown;
    shown.reserve(others.size() + 1);
    for (const auto& [cost, event] : others) shown.push_back(event);
    std::sort(shown.begin(), shown.end());
    shown.insert(shown.begin(), first);
    return shown;
}

Extent fitting(const Columns& columns) {
    constexpr std::size_t kAround = 8, kLeast = 10;
    const std::size_t others = kAround + columns.shown.size();
    const std::size_t lines = std::max(lines_of_page(), others + kLeast) - others;
    return {lines, lines};
}

void write_left_out(std::size_t rows, Output& output, std::string_view options) {
    if (rows != 0)
        output.write(fmt::format("and {} more above the threshold: see {}\n", with_thousands(rows),
                                 options));
}

void write_brief_totals(const Columns& columns, Output& output) {
    std::vector<std::vector<std::string>> rows;
    for (const std::size_t column : columns.shown) {
        if (column >= columns.header.events.size()) {
            const events::Derived& derived =
                columns.header.derived[column - columns.header.events.size()];
            const events::Formula formula(derived.formula, columns.header.events);
            rows.push_back({derived_text(derived, formula, columns.totals), printable(derived.name),
                            "= " + printable(derived.formula)});
            continue;
        }
        const events::Event& event = columns.header.events[column];
        std::string text = printable(event.description);
        if (!event.formula.empty()) text += " = " + printable(event.formula);
        rows.push_back({count_text(columns.totals[column], columns.header), event.name, text});
    }
    std::size_t widest = 0, longest = 0;
    for (const std::vector<std::string>& row : rows) {
        widest = std::max(widest, row[0].size());
        longest = std::max(longest, row[1].size());
    }
    for (const std::vector<std::string>& row : rows) {
        const std::size_t column = widest + longest + 4;
        output.write(fmt::format("{:>{}}  {}  {}\n", row[0], widest, padded(row[1], longest),
                                 wrapped(row[2], width_of_page(), column, column)));
    }
    output.write("\n");
}

}  // namespace assay
