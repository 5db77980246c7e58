// JSON with all contents of an events file. docs/reference/export-schema.json describes it.
#include "framework/events/formula.h"
#include "tools/export/export.h"
#include "tools/output/formats.h"

namespace assay::exporting {

namespace {

class JsonDocument {
  public:
    JsonDocument(const Selection& selection, Sink& sink)
        : profile_(selection.profile),
          events_(selection.events),
          groups_(profile_.groups()),
          json_(sink),
          all_(profile_.events().size()),
          shown_(events_.size()) {}

    void write() {
        json_.begin_object();
        json_.text("format", "assay-export");
        json_.number("version", 1);
        write_header();
        write_sites();
        write_functions();
        write_linkage_names();
        write_contexts();
        write_values();
        write_groups();
        write_series();
        json_.end_object();
    }

  private:
    void write_header();
    void write_events();
    void write_derived();
    void write_functions();
    void write_linkage_names();
    void write_lines(std::uint32_t place);
    void write_sites();
    void write_contexts();
    void write_values();
    void write_groups();
    void write_series();
    void write_axis(const events::Axis& axis);
    void write_group(std::uint32_t group);
    void write_counts(CountStore::Row row);
    void write_counts(Counts counts);

    const Profile& profile_;
    const std::vector<std::size_t>& events_;
    const Groups& groups_;
    JsonWriter json_;
    std::vector<std::uint64_t> all_, shown_;  // scratch
};

void JsonDocument::write_header() {
    json_.texts("commands", profile_.commands());
    json_.texts("files", profile_.paths());
    json_.texts("incomplete", profile_.incomplete());
    json_.named_texts("descriptions", profile_.heads().common_descriptions());
    write_events();
    write_derived();
    json_.objects("objects", profile_.objects(), [&](const events::Object& object) {
        json_.text("path", object.path);
        json_.text("buildId", object.build_id);
    });
}

void JsonDocument::write_events() {
    json_.objects("events", events_, [&](const std::size_t index) {
        const events::Event& event = profile_.events()[index];
        json_.text("name", event.name);
        json_.text("description", event.description);
        json_.text("unit", event.unit);
        json_.text("profiler", event.profiler);
        json_.number("total", profile_.totals()[index]);
    });
}

void JsonDocument::write_derived() {
    json_.objects("derived", profile_.derived(), [&](const events::Derived& derived) {
        json_.text("name", derived.name);
        json_.text("formula", derived.formula);
        json_.text("unit", derived.unit);
        json_.real("value",
                   events::Formula(derived.formula, profile_.events()).value(profile_.totals()));
    });
}

void JsonDocument::write_counts(CountStore::Row row) {
    profile_.counts().read(row, all_);
    write_counts(all_);
}

void JsonDocument::write_counts(Counts counts) {
    for (std::size_t i = 0; i < events_.size(); ++i)
        shown_[i] = counts.empty() ? 0 : counts[events_[i]];
    json_.numbers("counts", shown_);
}

void JsonDocument::write_functions() {
    json_.objects("functions", profile_.functions(), [&](const Profile::Function& function) {
        json_.text("name", profile_.text(function.name));
        json_.text("file", profile_.text(function.file));
        if (const std::optional<std::uint32_t> object = profile_.binary_of(function.name))
            json_.number("binary", *object);
        json_.begin_array("lines");
        for (std::uint32_t place = function.first_place; place < function.end_place; ++place)
            write_lines(place);
        json_.end_array();
    });
}

void JsonDocument::write_linkage_names() {
    json_.objects("linkageNames", profile_.linkage_names(), [&](const auto& each) {
        const auto& [function, name] = each;
        json_.text("function", function);
        json_.text("name", name);
    });
}

void JsonDocument::write_lines(std::uint32_t place) {
    auto at = profile_.instructions(place).begin();
    const auto end = profile_.instructions(place).end();
    auto part = profile_.lines_by_site(place).begin();
    for (const Profile::Line& line : profile_.lines(place)) {
        json_.begin_object();
        json_.text("file", profile_.text(profile_.places()[place].file));
        json_.number("line", line.line);
        write_counts(line.row);
        json_.begin_array("inlined");
        for (; part != profile_.lines_by_site(place).end() && part->line == line.line; ++part) {
            if (part->site == 0) continue;
            json_.begin_object();
            json_.number("site", part->site);
            write_counts(part->row);
            json_.end_object();
        }
        json_.end_array();
        json_.begin_array("instructions");
        while (at != end && at->line < line.line) ++at;
        for (; at != end && at->line == line.line; ++at) {
            json_.begin_object();
            json_.number("object", at->object);
            json_.address("address", at->address);
            json_.number("site", at->site);
            write_counts(at->row);
            json_.end_object();
        }
        json_.end_array();
        json_.end_object();
    }
}

void JsonDocument::write_sites() {
    json_.objects("sites", profile_.sites().subspan(1), [&](const Profile::Site& site) {
        json_.number("parent", site.parent);
        json_.text("file", profile_.text(site.file));
        json_.number("line", site.line);
        json_.text("function", profile_.text(site.function));
    });
}

void JsonDocument::write_contexts() {
    json_.objects("contexts", profile_.contexts().subspan(1), [&](const Profile::Context& context) {
        json_.number("parent", context.parent);
        json_.text("function", profile_.text(context.function));
        json_.boolean("signalHandler", context.kind == events::StackKind::kHandler);
        if (context.kind == events::StackKind::kInlined) {
            json_.number("inlinedAtLine", context.line);
        } else if (context.kind == events::StackKind::kJumped) {
            json_.number("jumpedAtLine", context.line);
        } else {
            json_.number("callObject", context.object);
            json_.address("callAddress", context.address);
            if (context.line != 0) json_.number("callLine", context.line);
        }
        if (context.calls != 0) json_.number("calls", context.calls);
        write_counts(context.row);
    });
    json_.objects("recursions", profile_.recursions(), [&](const auto& each) {
        const auto& [recursion, number] = each;
        json_.number("context", recursion.context);
        json_.number("caller", recursion.caller);
        json_.number("callObject", recursion.object);
        json_.address("callAddress", recursion.address);
        if (recursion.line != 0) json_.number("callLine", recursion.line);
        json_.number("calls", number);
    });
}

void JsonDocument::write_values() {
    json_.objects("values", profile_.values(), [&](const Profile::Values& values) {
        const Profile::Place& place = profile_.places()[values.place];
        json_.text("list", values.list.name);
        json_.text("function", profile_.text(place.function));
        json_.text("file", profile_.text(place.file));
        json_.number("line", values.line);
        json_.number("object", values.object);
        json_.address("address", values.address);
        json_.number("total", values.list.total);
        json_.number("error", values.list.error);
        json_.objects("values", values.list.values, [&](const events::HotValue& each) {
            json_.address("value", each.value);
            json_.number("count", each.count);
        });
    });
}

void JsonDocument::write_groups() {
    json_.begin_array("groups");
    for (std::uint32_t i = 0; i < groups_.groups().size(); ++i) write_group(i);
    json_.end_array();
}

void JsonDocument::write_axis(const events::Axis& axis) {
    json_.begin_object();
    json_.text("name", axis.name);
    json_.text("unit", axis.unit);
    json_.end_object();
}

void JsonDocument::write_series() {
    json_.objects("series", profile_.series(), [&](const events::Series& series) {
        json_.text("name", series.name);
        json_.text("description", series.description);
        json_.text("profiler", series.profiler);
        json_.number("thread", series.thread);
        json_.text("phase", series.phase);
        json_.text("from", series.from);
        json_.boolean("logarithmic", series.log_x);
        json_.number("each", series.each);
        json_.key("x");
        write_axis(series.x);
        json_.begin_array("columns");
        for (const events::Axis& column : series.columns) write_axis(column);
        json_.end_array();
        json_.begin_array("points");
        for (std::size_t i = 0; i < series.points(); ++i)
            json_.numbers(Counts(series.numbers).subspan(i * series.width(), series.width()));
        json_.end_array();
    });
}

void JsonDocument::write_group(std::uint32_t number) {
    const Groups::Group& group = groups_.groups()[number];
    json_.begin_object();
    json_.text("kind", group.kind);
    json_.text("name", group.name);
    json_.number("parent", group.parent == Groups::kNone ? 0 : group.parent + 1);
    json_.named_texts("attributes", group.attributes);
    json_.text("binary", group.binary);
    json_.texts("callers", group.callers);
    write_counts(group.counts);
    json_.objects("lines", groups_.lines(number), [&](const Groups::Line& line) {
        json_.text("file", groups_.text(line.file));
        json_.number("line", line.line);
        json_.text("function", groups_.text(line.function));
        write_counts(Counts(line.counts));
    });
    json_.end_object();
}

}  // namespace

void write_json(const Selection& selection, Sink& sink) {
    JsonDocument(selection, sink).write();
    sink.write("\n");
}

}  // namespace assay::exporting
