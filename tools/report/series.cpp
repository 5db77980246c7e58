#include "tools/report/series.h"

namespace assay::report {

namespace {

void write_axis(const events::Axis& axis, JsonWriter& json) {
    json.begin_object();
    json.text("name", axis.name);
    json.text("unit", axis.unit);
    json.end_object();
}

// By column, x first: as it is drawn.
void write_all(const WholeProfile& profile, std::string_view version, JsonWriter& json) {
    for (const events::Series& series : profile.series()) {
        json.begin_object();
        json.text("version", version);
        json.text("name", series.name);
        json.text("description", series.description);
        json.text("profiler", series.profiler);
        json.number("thread", series.thread);
        json.text("phase", series.phase);
        json.text("from", series.from);
        json.boolean("log", series.log_x);
        json.number("each", series.each);
        json.key("axes");
        json.begin_array();
        write_axis(series.x, json);
        for (const events::Axis& column : series.columns) write_axis(column, json);
        json.end_array();
        json.key("numbers");
        json.begin_array();
        for (std::size_t i = 0; i < series.width(); ++i) {
            json.begin_array();
            for (std::size_t at = i; at < series.numbers.size(); at += series.width())
                json.number(series.numbers[at]);
            json.end_array();
        }
        json.end_array();
        json.end_object();
    }
}

}  // namespace

void write_series(const WholeProfile& profile, const WholeProfile* old, JsonWriter& json) {
    json.key("series");
    json.begin_array();
    if (old) write_all(*old, "before", json);
    write_all(profile, old ? "after" : "", json);
    json.end_array();
    json.number("seriesLeftOut", profile.series_left_out() + (old ? old->series_left_out() : 0));
}

}  // namespace assay::report
