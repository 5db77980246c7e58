#include "tools/report/data.h"

#include "framework/events/formula.h"
#include "tools/code/object_code.h"
#include "tools/output/formats.h"
#include "tools/profile/stack_tree.h"
#include "tools/report/assembly.h"
#include "tools/report/functions.h"
#include "tools/report/sources.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {

namespace {

// Frames with a smaller share of every event are not drawn: they are narrower than a hundredth of a
// pixel.
constexpr double kLeastFrame = 1e-5;
constexpr std::size_t kMostStackDepth = 256;

class DataDocument {
  public:
    DataDocument(const Content& content, const Options& options, Sink& sink)
        : content_(content),
          profile_(content.profile),
          old_(content.old),
          groups_(content.groups),
          phases_(content.phases),
          options_(options),
          columns_(profile_.events().size()),
          functions_(profile_, old_),
          names_(options.names),
          json_(sink, JsonWriter::Texts::kPrintable) {
        names_.add(profile_);
        if (old_) names_.add(*old_);
        functions_.add_names(names_);
        names_.finish();
    }

    void write() {
        json_.begin_object();
        write_header();
        functions_.write(names_, content_.limits.functions, json_);
        Assembly assembly(profile_, old_, functions_, names_, content_.limits.instructions);
        Sources(content_, options_, functions_, assembly, json_).write();
        json_.key("assembly");
        assembly.write_summary(json_);
        write_flame_graph();
        json_.key("calls");
        if (old_)
            json_.null();  // the page shows calls of one profile only
        else
            write_calls(profile_, functions_.calls(), content_.limits.calls, names_, json_);
        json_.key("groups");
        const std::vector<std::uint32_t> shown =
            write_groups(groups_, profile_.totals(), functions_, names_, content_.limits, json_);
        json_.key("summary");
        write_summary(content_, options_, names_, shown, json_);
        write_values(profile_, names_, content_.limits.value_lists, json_);
        write_phases();
        write_series(profile_, old_, names_, json_);
        json_.end_object();
    }

  private:
    void write_header();
    void write_events();
    void write_derived();
    std::vector<std::uint32_t> largest_frames(const StackTree& tree) const;
    void write_flame_graph();
    void write_phases();
    double share(Counts counts) const { return largest_share(counts, profile_.totals()); }

    const Content& content_;
    const Profile& profile_;
    const Profile* old_;
    const Groups* groups_;
    const std::optional<Phases>& phases_;
    const Options& options_;
    std::size_t columns_;
    FunctionList functions_;
    DisplayNames names_;
    JsonWriter json_;
};

void DataDocument::write_header() {
    json_.texts("commands", profile_.commands());
    json_.texts("files", profile_.paths());
    json_.texts("incomplete", profile_.incomplete());
    json_.texts("old", old_ ? std::span(old_->paths()) : std::span<const std::string>());
    json_.begin_array("descriptions");
    for (const auto& [name, text] : profile_.heads().common_descriptions()) {
        json_.begin_array();
        json_.text(name);
        json_.text(text);
        json_.end_array();
    }
    json_.end_array();
    write_events();
    write_derived();
}

void DataDocument::write_events() {
    json_.begin_array("events");
    for (std::size_t i = 0; i < columns_; ++i) {
        const events::Event& event = profile_.events()[i];
        json_.begin_object();
        json_.text("name", event.name);
        json_.text("description", event.description);
        json_.text("unit", event.unit);
        json_.number("total", profile_.totals()[i]);
        if (old_) json_.number("old", old_->totals()[i]);
        json_.end_object();
    }
    json_.end_array();
}

void DataDocument::write_derived() {
    const auto value_of = [&](const events::Derived& derived, const Profile& profile) {
        return events::Formula(derived.formula, profile_.events()).value(profile.totals());
    };
    json_.objects("derived", profile_.derived(), [&](const events::Derived& derived) {
        json_.text("name", derived.name);
        json_.text("unit", derived.unit);
        json_.real("value", value_of(derived, profile_));
        if (old_) json_.real("old", value_of(derived, *old_));
    });
}

// --- Flame graph

// Returns the frames with the largest shares, in their order. An inner frame is never larger than
// its outer frame, so this leaves out whole subtrees.
std::vector<std::uint32_t> DataDocument::largest_frames(const StackTree& tree) const {
    std::vector<std::pair<double, std::uint32_t>> shares;
    for (std::uint32_t i = 1; i < tree.frames().size(); ++i) {
        const Counts counts = tree.frames()[i].counts;
        const double largest =
            std::max(share(counts.first(columns_)), share(counts.last(columns_)));
        if (largest >= kLeastFrame) shares.emplace_back(-largest, i);
    }
    std::sort(shares.begin(), shares.end());
    shares.resize(std::min(shares.size(), content_.limits.frames));
    std::vector<std::uint32_t> chosen{0};
    for (const auto& [share, frame] : shares) chosen.push_back(frame);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

// Writes names of frames, and their counts without those of the inner frames on the page, because
// most of these are 0. The page adds up the rest.
void DataDocument::write_flame_graph() {
    const std::vector<bool> by_context = counted_by_context(profile_, old_);
    const bool has_sites = profile_.has_sites() || (old_ && old_->has_sites());
    std::vector<std::size_t> events;
    std::vector<std::uint64_t> by_stack;
    for (std::size_t event = 0; event < columns_; ++event) {
        if (!by_context[event] && !has_sites) continue;
        events.push_back(event);
        by_stack.push_back(by_context[event]);
    }
    StackTree tree(2 * columns_, kMostStackDepth);
    tree.add(profile_, 0, by_context);
    if (old_) tree.add(*old_, columns_, by_context);
    tree.make_inclusive();
    std::vector<std::uint32_t> numbers(tree.frames().size());
    std::vector<std::uint64_t> parents, handlers, inlined, names;
    std::vector<std::string> texts;
    std::map<Strings::Id, std::uint64_t> text_numbers;
    std::vector<Column> columns(events.size()), old(events.size());
    for (const std::uint32_t i : largest_frames(tree)) {
        const StackTree::Frame& frame = tree.frames()[i];
        numbers[i] = static_cast<std::uint32_t>(names.size());
        const std::uint32_t parent = numbers[frame.parent];
        parents.push_back(parent);
        handlers.push_back(frame.handler);
        inlined.push_back(frame.inlined);
        const auto [text, is_new] = text_numbers.try_emplace(frame.name, texts.size());
        if (is_new) texts.push_back(names_(tree.name(frame)));
        names.push_back(text->second);
        for (std::size_t event = 0; event < events.size(); ++event) {
            const std::uint64_t now = frame.counts[events[event]],
                                before = frame.counts[columns_ + events[event]];
            columns[event].push_back(now);
            old[event].push_back(before);
            if (i == 0) continue;
            columns[event][parent] -= now;
            old[event][parent] -= before;
        }
    }
    json_.begin_object("flame");
    json_.numbers("events", events);
    json_.numbers("byStack", by_stack);
    json_.numbers("parent", parents);
    json_.numbers("handler", handlers);
    json_.numbers("inlined", inlined);
    json_.texts("texts", texts);
    json_.numbers("name", names);
    write_columns("counts", columns, json_);
    if (old_) write_columns("old", old, json_);
    json_.end_object();
}

// --- Phases

void DataDocument::write_phases() {
    json_.key("phases");
    if (!phases_) {
        json_.null();
        return;
    }
    json_.begin_object();
    json_.numbers("instructions", phases_->instructions);
    json_.numbers("phases", phases_->phases);
    json_.boolean("labelled", phases_->labelled);
    json_.objects("points", phases_->points, [&](const SimulationPoint& point) {
        json_.number("interval", point.interval);
        json_.number("cluster", point.cluster);
        json_.real("weight", point.weight);
    });
    json_.end_object();
}

}  // namespace

void write_data(const Content& content, const Options& options, Sink& sink) {
    DataDocument(content, options, sink).write();
}

namespace {

void write_list(const Profile& profile, const Profile::Values& values, const ValueSymbols& symbols,
                const DisplayNames& names, JsonWriter& json) {
    const Profile::Place& place = profile.places()[values.place];
    json.begin_object();
    json.text("list", values.list.name);
    json.text("function", names(profile.text(place.function)));
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

void write_values(const Profile& profile, const DisplayNames& names, std::size_t most,
                  JsonWriter& json) {
    std::vector<const Profile::Values*> lists;
    for (const Profile::Values& values : profile.values()) lists.push_back(&values);
    std::stable_sort(lists.begin(), lists.end(),
                     [](const auto* a, const auto* b) { return a->list.total > b->list.total; });
    const std::size_t shown = std::min(lists.size(), most);
    json.number("valuesLeftOut", lists.size() - shown);
    lists.resize(shown);
    std::vector<std::uint64_t> values;
    for (const Profile::Values* list : lists)
        for (const events::HotValue& each : list->list.values) values.push_back(each.value);
    const ValueSymbols symbols(profile.objects(), std::move(values));
    json.begin_array("values");
    for (const Profile::Values* list : lists) write_list(profile, *list, symbols, names, json);
    json.end_array();
}

namespace {

void write_axis(const events::Axis& axis, std::string_view name, JsonWriter& json) {
    json.begin_object();
    json.text("name", name);
    json.text("unit", axis.unit);
    json.end_object();
}

// Writes series by column, x first, as the page draws them.
void write_all(const Profile& profile, std::string_view version, const DisplayNames& names,
               JsonWriter& json) {
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
        write_axis(series.x, series.x.name, json);
        const bool is_heap = series.profiler.empty();
        for (const events::Axis& column : series.columns)
            write_axis(column, is_heap ? names.of_site(column.name) : column.name, json);
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

void write_series(const Profile& profile, const Profile* old, const DisplayNames& names,
                  JsonWriter& json) {
    json.begin_array("series");
    if (old) write_all(*old, "before", names, json);
    write_all(profile, old ? "after" : "", names, json);
    json.end_array();
    json.number("seriesLeftOut", profile.series_left_out() + (old ? old->series_left_out() : 0));
}

}  // namespace assay::report
