#include "tools/sweep/writers.h"

#include "framework/support/text.h"
#include "tools/output/json_writer.h"
#include "tools/output/output.h"
#include "tools/output/quoting.h"

#include <fmt/core.h>
#include <algorithm>
#include <span>

namespace assay::sweep {
namespace {

// Figures as they are, those in per cent too.
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

// Nothing of the sweep stands in the page as it is: the title is escaped, and in the data, which
// are JSON, no "<" is left that could begin an end of their element. The policy keeps the page from
// loading or sending anything, whatever is in them.
void write_html(const Plan& plan, const Results& results, Sink& sink) {
    const std::string title = html_text(printable(join(plan.program(), " ")));
    sink.write(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
        "<title>" +
        title + " - assay sweep</title>\n<style>\n");
    for (const std::string_view piece : kStyle) sink.write(piece);
    sink.write(
        "</style>\n</head>\n<body>\n<div class=\"top\"><div><h1>" + title +
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

    // What the point does not count, or has no value, is not there.
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

// Values of options to the left, numbers to the right.
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
    std::vector<std::size_t> widths(rows[0].size());
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string blanks(widths[i] - row[i].size(), ' ');
            line += (i == 0 ? "" : "  ") + (i < options ? row[i] + blanks : blanks + row[i]);
        }
        text += line + "\n";
    }
    return text;
}

}  // namespace assay::sweep
