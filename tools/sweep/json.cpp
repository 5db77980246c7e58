#include "tools/output/json_writer.h"
#include "tools/sweep/writers.h"

#include <fmt/core.h>

namespace assay::sweep {
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
        json_.key("points");
        json_.begin_array();
        for (std::size_t point = 0; point < plan_.size(); ++point) write_point(point);
        json_.end_array();
        json_.end_object();
    }

  private:
    void write_options() {
        json_.key("options");
        json_.begin_array();
        for (const SweptOption& option : plan_.swept()) {
            json_.begin_object();
            json_.text("name", option.name);
            json_.texts("values", option.values);
            json_.numbers("sizes", option.sizes);
            json_.end_object();
        }
        json_.end_array();
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
        json_.key("options");
        json_.begin_object();
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
        json_.key(key);
        json_.begin_object();
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

}  // namespace assay::sweep
