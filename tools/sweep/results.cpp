#include "tools/sweep/results.h"

#include "framework/events/formula.h"
#include "framework/events/index.h"
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/output/formats.h"
#include "tools/output/output.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <span>

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
    if (!std::filesystem::exists(file)) throw Error("no events file was written");
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

namespace {

// Counts and figures as plain numbers, including percentages.
std::string plain_text(const Cell& cell) {
    if (const auto* const count = std::get_if<std::uint64_t>(&cell)) return std::to_string(*count);
    if (const auto* const figure = std::get_if<double>(&cell)) return fmt::format("{}", *figure);
    return "";
}

}  // namespace

void write_csv(const Plan& plan, const Results& results, Sink& sink) {
    std::string row = "point";
    for (const SweptOption& option : plan.swept()) row += "," + csv_field(option.name);
    for (const Column& column : results.columns()) row += "," + csv_field(column.name);
    sink.write(row + "\r\n");
    for (std::size_t point = 0; point < plan.size(); ++point) {
        row = std::to_string(point + 1);
        for (const std::string& value : plan.values(point)) row += "," + csv_field(value);
        for (std::size_t i = 0; i < results.columns().size(); ++i)
            row += "," + (results.is_finished(point) ? plain_text(results.row(point)[i]) : "");
        sink.write(row + "\r\n");
    }
}

// The page contains no text of the sweep unescaped: the title is escaped, and the JSON data have no
// "<" that could end their element.
void write_html(const Plan& plan, const Results& results, Sink& sink) {
    const std::string title = html_text(printable(join(plan.program(), " ")));
    begin_page(title + " - assay sweep", kStyle, true, sink);
    sink.write(
        "<div class=\"top\"><div><h1>" + title +
        "</h1></div></div>\n<main id=\"app\"></main>\n<noscript>This page draws its plots by "
        "JavaScript.</noscript>\n<script type=\"application/json\" id=\"data\">");
    Sink data(
        [&](std::string_view bytes) {
            for (const char byte : bytes)
                sink.write(byte == '<' ? std::string_view("\\u003c") : std::string_view(&byte, 1));
        },
        Compress::kByName);
    write_json(plan, results, data);
    data.finish();
    sink.write("</script>\n<script>\n");
    for (const std::string_view piece : kScript) sink.write(piece);
    sink.write("</script>\n</body>\n</html>\n");
}

namespace {

class Document {
  public:
    Document(const Plan& plan, const Results& results, Sink& sink)
        : plan_(plan), results_(results), json_(sink) {}

    void write() {
        json_.begin_object();
        json_.text("format", "assay-sweep");
        json_.number("version", 1);
        json_.texts("program", plan_.program());
        write_options();
        json_.key("events");
        write_columns(false);
        json_.key("derived");
        write_columns(true);
        json_.begin_array("points");
        for (std::size_t point = 0; point < plan_.size(); ++point) write_point(point);
        json_.end_array();
        json_.end_object();
    }

  private:
    void write_options() {
        json_.objects("options", plan_.swept(), [&](const SweptOption& option) {
            json_.text("name", option.name);
            json_.texts("values", option.values);
            json_.numbers("sizes", option.sizes);
        });
    }

    void write_columns(bool figures) {
        json_.begin_array();
        for (const Column& column : results_.columns()) {
            if (column.is_figure() != figures) continue;
            json_.begin_object();
            json_.text("name", column.name);
            json_.text("unit", column.unit);
            if (figures)
                json_.text("formula", column.formula);
            else
                json_.text("description", column.description);
            json_.end_object();
        }
        json_.end_array();
    }

    void write_point(std::size_t point) {
        json_.begin_object();
        json_.number("number", point + 1);
        json_.boolean("finished", results_.is_finished(point));
        const std::vector<std::string> values = plan_.values(point);
        json_.begin_object("options");
        for (std::size_t i = 0; i < values.size(); ++i)
            json_.text(plan_.swept()[i].name, values[i]);
        json_.end_object();
        if (results_.is_finished(point)) {
            json_.text("file", fmt::format("points/{}/{}", plan_.name(point), kEventsFile));
            write_cells(point, false, "counts");
            write_cells(point, true, "derived");
        }
        json_.end_object();
    }

    // Omits events that the point does not count and figures without a value.
    void write_cells(std::size_t point, bool figures, std::string_view key) {
        json_.begin_object(key);
        for (std::size_t i = 0; i < results_.columns().size(); ++i) {
            const Column& column = results_.columns()[i];
            const Cell& cell = results_.row(point)[i];
            if (column.is_figure() != figures) continue;
            if (const auto* const count = std::get_if<std::uint64_t>(&cell))
                json_.number(column.name, *count);
            else if (const auto* const figure = std::get_if<double>(&cell))
                json_.real(column.name, *figure);
        }
        json_.end_object();
    }

    const Plan& plan_;
    const Results& results_;
    JsonWriter json_;
};

}  // namespace

void write_json(const Plan& plan, const Results& results, Sink& sink) {
    Document(plan, results, sink).write();
    sink.write("\n");
}

// Values of options are aligned to the left, numbers to the right.
std::string text_table(const Plan& plan, const Results& results) {
    const std::size_t options = plan.swept().size();
    std::vector<std::vector<std::string>> rows(1);
    for (const SweptOption& option : plan.swept()) rows[0].push_back(printable(option.name));
    for (const Column& column : results.columns()) rows[0].push_back(printable(column.name));
    for (std::size_t point = 0; point < plan.size(); ++point) {
        std::vector<std::string>& row = rows.emplace_back();
        for (const std::string& value : plan.values(point)) row.push_back(printable(value));
        for (std::size_t i = 0; i < results.columns().size(); ++i)
            row.push_back(results.is_finished(point)
                              ? cell_text(results.row(point)[i], results.columns()[i])
                              : "-");
    }
    return aligned(rows, options);
}

}  // namespace assay::sweep
