// The page of assay history: a curve and a table for each program.
#include "framework/support/text.h"
#include "tools/diff/history.h"
#include "tools/diff/writers.h"
#include "tools/output/formats.h"

#include <fmt/core.h>

namespace assay::diff {
namespace {

void write_curve(const ProgramHistory& history, Sink& sink) {
    constexpr double kWidth = 1000, kHeight = 160, kMargin = 12;
    const std::vector<VersionCounts>& versions = history.versions;
    const double step = (kWidth - 2 * kMargin) / static_cast<double>(versions.size() - 1);
    std::string line, points;
    for (std::size_t i = 0; i < versions.size(); ++i) {
        const double x = kMargin + static_cast<double>(i) * step,
                     y = kMargin + (1 - history.height(versions[i])) * (kHeight - 2 * kMargin);
        line += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "" : " ", x, y);
        points += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}: {} {}</title></circle>\n", x, y,
            html_text(versions[i].name), with_thousands(versions[i].count), versions[i].change);
    }
    sink.write(
        fmt::format("<svg class=\"history\" viewBox=\"0 0 {} {}\" role=\"img\" "
                    "aria-label=\"{} by version, from the lowest to the highest count\">"
                    "<polyline points=\"{}\"/>\n{}</svg>\n",
                    kWidth, kHeight, html_text(history.event), line, points));
}

void write_versions(const ProgramHistory& history, Sink& sink) {
    sink.write(
        fmt::format("<table class=\"plain\"><tr><th>version<th class=\"num\">{}"
                    "<th class=\"num\">change<th>functions that changed</tr>\n",
                    html_text(history.event)));
    for (const VersionCounts& version : history.versions) {
        const std::string_view color = version.change.starts_with('+')   ? " worse"
                                       : version.change.starts_with('-') ? " better"
                                                                         : "";
        sink.write(fmt::format(
            "<tr><td class=\"name\">{}<td class=\"num\">{}"
            "<td class=\"num{}\">{}<td class=\"name\">",
            html_text(version.name), with_thousands(version.count), color, version.change));
        for (std::size_t i = 0; i < version.functions.size(); ++i)
            sink.write((i == 0 ? "" : "<br>") + html_text(version.functions[i]));
        sink.write("</tr>\n");
    }
    sink.write("</table>");
}

}  // namespace

void write_history_page(const Histories& histories, Sink& sink) {
    begin_page("History - assay", kStyle, false, sink);
    sink.write("<div class=\"top\"><div><h1>History</h1></div></div>\n<main>\n");
    for (const auto& [command, history] : histories) {
        sink.write(fmt::format("<div class=\"panel scroll-x\"><h2>{} of {}</h2>\n",
                               html_text(history.event), html_text(printable(command))));
        write_curve(history, sink);
        write_versions(history, sink);
        sink.write("</div>\n");
    }
    sink.write("</main>\n</body>\n</html>\n");
}

}  // namespace assay::diff
