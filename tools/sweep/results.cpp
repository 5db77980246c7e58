#include "tools/sweep/results.h"

#include "framework/events/formula.h"
#include "framework/events/index.h"
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::sweep {
namespace {

std::vector<std::string> names_of(const std::vector<Column>& columns) {
    std::vector<std::string> names;
    names.reserve(columns.size());
    for (const Column& column : columns) names.push_back(column.name);
    return names;
}

bool has(const std::vector<Column>& columns, const std::string& name) {
    const std::vector<std::string> names = names_of(columns);
    return std::find(names.begin(), names.end(), name) != names.end();
}

Cell cell_of(const PointResult& result, const Column& column) {
    const std::vector<events::Event>& all = result.header.events;
    if (column.is_figure()) {
        for (const events::Derived& derived : result.header.derived)
            if (derived.name == column.name)
                if (const auto value = events::Formula(derived.formula, all).value(result.totals))
                    return *value;
        return {};
    }
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].name == column.name) return result.totals[i];
    return {};
}

std::vector<Column> chosen(const std::vector<Column>& all, const std::vector<std::string>& show) {
    std::vector<Column> columns;
    for (const std::string& name : show) {
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](const Column& column) { return column.name == name; });
        if (found != all.end()) {
            columns.push_back(*found);
            continue;
        }
        const std::string meant = nearest(name, names_of(all));
        throw Error(fmt::format("--show: no point has '{}'; they have {}{}", name,
                                join(names_of(all), ", "),
                                meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
    }
    return columns;
}

}  // namespace

PointResult read_point(const std::filesystem::path& folder) {
    const std::string file = folder / kEventsFile;
    const std::string index = folder / fmt::format("index.{}", kEventsFile);
    if (!std::filesystem::exists(file)) throw Error("it has written no events file");
    events::Handler nothing;
    events::FileSummary summary = events::read_events(file, nothing);
    if (!summary.header.incomplete.empty())
        throw Error(fmt::format("its counts are not complete: {}", summary.header.incomplete));
    PointResult result{std::move(summary.header), std::move(summary.totals)};
    if (!std::filesystem::exists(index)) return result;
    const events::Index processes = events::read_index(index);
    if (processes.events.size() != result.totals.size())
        throw Error(fmt::format("{} does not fit {}", index, file));
    std::fill(result.totals.begin(), result.totals.end(), 0);
    for (const events::IndexedProfile& process : processes.profiles)
        for (std::size_t i = 0; i < process.counts.size(); ++i)
            result.totals[i] += process.counts[i];
    return result;
}

std::string cell_text(const Cell& cell, const Column& column) {
    if (const auto* const count = std::get_if<std::uint64_t>(&cell)) return with_thousands(*count);
    const auto* const figure = std::get_if<double>(&cell);
    if (!figure) return "-";
    return figure_text(*figure, column.unit == "%" ? column.unit : "");
}

Results::Results(const std::vector<std::optional<PointResult>>& points,
                 const std::vector<std::string>& show) {
    std::vector<Column> figures;
    for (const std::optional<PointResult>& point : points) {
        if (!point) continue;
        for (const events::Event& event : point->header.events)
            if (!has(columns_, event.name))
                columns_.push_back({event.name, event.unit, event.description, ""});
        for (const events::Derived& derived : point->header.derived)
            if (!has(figures, derived.name))
                figures.push_back({derived.name, derived.unit, "", derived.formula});
    }
    columns_.insert(columns_.end(), figures.begin(), figures.end());
    if (!show.empty() && !columns_.empty()) columns_ = chosen(columns_, show);
    for (const std::optional<PointResult>& point : points) {
        std::vector<Cell>& row = rows_.emplace_back();
        finished_.push_back(point.has_value());
        if (!point) continue;
        for (const Column& column : columns_) row.push_back(cell_of(*point, column));
    }
}

}  // namespace assay::sweep
