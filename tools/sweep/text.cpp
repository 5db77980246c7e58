#include "framework/support/text.h"
#include "tools/output/output.h"
#include "tools/sweep/writers.h"

#include <algorithm>
#include <span>

namespace assay::sweep {

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
