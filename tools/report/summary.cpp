#include "tools/summary/findings.h"

#include "tools/report/data.h"

#include <algorithm>

namespace assay::report {

namespace {

std::string_view text_of(summary::Of of) {
    switch (of) {
        case summary::Of::kFunctions:
            return "functions";
        case summary::Of::kLines:
            return "lines";
        case summary::Of::kData:
            break;
    }
    return "data";
}

void write_row(const summary::Finding& row, const std::vector<std::uint32_t>& shown,
               JsonWriter& json) {
    json.real("share", row.share);
    json.text("name", row.name);
    json.text("file", row.file);
    json.number("line", row.line);
    json.text("text", row.text);
    const auto group = row.group ? std::find(shown.begin(), shown.end(), *row.group) : shown.end();
    json.key("group");
    if (group == shown.end())
        json.null();
    else
        json.number(static_cast<std::uint64_t>(group - shown.begin()));
}

}  // namespace

void write_summary(const Content& content, const Options& options, const DisplayNames& names,
                   const std::vector<std::uint32_t>& shown, JsonWriter& json) {
    if (content.old) return json.null();
    const summary::Findings found = summary::findings(content.profile, content.profile.groups(),
                                                      names, options.profiles, options.where);
    json.begin_object();
    json.number("total", found.total);
    json.text("totalName", found.total_name);
    json.text("meaning", found.meaning);
    json.objects("cycles", found.cycles, [&](const summary::CycleShare& each) {
        json.real("share", each.share);
        json.text("name", each.name);
    });
    json.texts("remarks", found.remarks);
    json.objects("sections", found.sections, [&](const summary::Section& section) {
        json.text("of", text_of(section.of));
        json.text("title", section.title);
        json.text("remark", section.remark);
        json.objects("rows", section.rows,
                     [&](const summary::Finding& row) { write_row(row, shown, json); });
    });
    json.objects("next", found.next, [&](const summary::Step& step) {
        json.text("command", step.command);
        json.text("purpose", step.purpose);
    });
    json.end_object();
}

}  // namespace assay::report
