// The counts of all points of a sweep as one table.
#pragma once

#include "framework/events/header.h"
#include "tools/output/output.h"
#include "tools/sweep/folder.h"
#include "tools/sweep/plan.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace assay::sweep {

// Adds up all processes of a run.
struct PointResult {
    events::Header header;
    std::vector<std::uint64_t> totals;
};

// Reads the folder of a point. Throws Error if its events file is missing, incomplete or does not
// cover a whole run.
PointResult read_point(const std::filesystem::path& folder);

struct Column {
    std::string name, unit;
    std::string description;  // for events
    std::string formula;      // for figures; "" for events

    bool is_figure() const { return !formula.empty(); }
};

// No value if the point's profilers do not count the event, or if the figure divides by zero.
using Cell = std::variant<std::monostate, std::uint64_t, double>;

// For people; "-" without a value.
std::string cell_text(const Cell& cell, const Column& column);

class Results {
  public:
    // Points without a value are not finished. `show` is Options::show. Throws Error if it contains
    // a name that no point has.
    Results(const std::vector<std::optional<PointResult>>& points,
            const std::vector<std::string>& show);

    // Events, then figures; or the columns that the user has chosen.
    const std::vector<Column>& columns() const { return columns_; }
    bool is_finished(std::size_t point) const { return finished_[point]; }
    // Empty if the point is not finished.
    const std::vector<Cell>& row(std::size_t point) const { return rows_[point]; }

  private:
    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
    std::vector<bool> finished_;
};

// Writes the table of a sweep in each format.

// A row for each point: the values of the swept options, then events and figures.
std::string text_table(const Plan& plan, const Results& results);
void write_csv(const Plan& plan, const Results& results, Sink& sink);
// As sweep-schema.json of the documentation describes.
void write_json(const Plan& plan, const Results& results, Sink& sink);
// A page with plots that needs no other file.
void write_html(const Plan& plan, const Results& results, Sink& sink);

// Style and script of the page of assay sweep. embed.py makes them from page.css, page.js and the
// style of reports.

// Consecutive pieces of one text.
extern const std::span<const std::string_view> kStyle, kScript;

}  // namespace assay::sweep
