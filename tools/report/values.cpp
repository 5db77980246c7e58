#include "tools/report/data.h"

#include "tools/code/object_code.h"

#include <algorithm>
#include <vector>

namespace assay::report {
namespace {

constexpr std::size_t kMostLists = 2'000;

void write_list(const Profile& profile, const Profile::Values& values, const ValueSymbols& symbols,
                JsonWriter& json) {
    const Profile::Place& place = profile.places()[values.place];
    json.begin_object();
    json.text("list", values.list.name);
    json.text("function", profile.text(place.function));
    json.text("file", profile.text(place.file));
    json.number("line", values.line);
    json.text("object", profile.objects()[values.object].path);
    json.address("address", values.address);
    json.number("total", values.list.total);
    json.number("error", values.list.error);
    json.begin_array("values");
    for (const events::HotValue& each : values.list.values) {
        json.begin_array();
        json.address(each.value);
        json.number(each.count);
        if (const std::string_view name = symbols.name(each.value); !name.empty()) json.text(name);
        json.end_array();
    }
    json.end_array();
    json.end_object();
}

}  // namespace

void write_values(const Profile& profile, JsonWriter& json) {
    std::vector<const Profile::Values*> lists;
    for (const Profile::Values& values : profile.values()) lists.push_back(&values);
    std::stable_sort(lists.begin(), lists.end(),
                     [](const auto* a, const auto* b) { return a->list.total > b->list.total; });
    const std::size_t shown = std::min(lists.size(), kMostLists);
    json.number("valuesLeftOut", lists.size() - shown);
    lists.resize(shown);
    std::vector<std::uint64_t> values;
    for (const Profile::Values* list : lists)
        for (const events::HotValue& each : list->list.values) values.push_back(each.value);
    const ValueSymbols symbols(profile.objects(), std::move(values));
    json.begin_array("values");
    for (const Profile::Values* list : lists) write_list(profile, *list, symbols, json);
    json.end_array();
}

namespace {

void write_axis(const events::Axis& axis, JsonWriter& json) {
    json.begin_object();
    json.text("name", axis.name);
    json.text("unit", axis.unit);
    json.end_object();
}

// By column, x first: as it is drawn.
void write_all(const Profile& profile, std::string_view version, JsonWriter& json) {
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
        json.begin_array("axes");
        write_axis(series.x, json);
        for (const events::Axis& column : series.columns) write_axis(column, json);
        json.end_array();
        json.begin_array("numbers");
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

void write_series(const Profile& profile, const Profile* old, JsonWriter& json) {
    json.begin_array("series");
    if (old) write_all(*old, "before", json);
    write_all(profile, old ? "after" : "", json);
    json.end_array();
    json.number("seriesLeftOut", profile.series_left_out() + (old ? old->series_left_out() : 0));
}

}  // namespace assay::report
