#include "tools/output/csv.h"
#include "tools/sweep/writers.h"

#include <fmt/core.h>

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

}  // namespace assay::sweep
