#include "tools/report/data.h"

#include "framework/events/formula.h"
#include "tools/output/json_writer.h"
#include "tools/profile/stack_tree.h"
#include "tools/report/assembly.h"
#include "tools/report/columns.h"
#include "tools/report/functions.h"
#include "tools/report/sources.h"

#include <algorithm>

namespace assay::report {

namespace {

// What a page can hold and a reader wants to see; the rest is added up, or left out and said so.
// Frames that have less than this share of every event are not drawn: they would be narrower than
// a hundredth of a pixel.
constexpr double kLeastFrame = 1e-5;
constexpr double kLeastCalls = 1e-4;  // share of a total, of functions and calls in their view
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
          json_(sink, JsonWriter::Texts::kPrintable) {}

    void write() {
        json_.begin_object();
        write_header();
        functions_.write(json_);
        Assembly assembly(profile_, old_, functions_);
        Sources(content_, options_, functions_, assembly, json_).write();
        json_.key("assembly");
        assembly.write_summary(json_);
        write_flame_graph();
        json_.key("calls");
        if (old_)
            json_.null();  // only one profile's calls can be shown
        else
            write_calls(profile_, kLeastCalls, json_);
        json_.key("groups");
        write_groups(groups_, profile_.totals(), functions_, json_);
        write_values(profile_, json_);
        write_phases();
        write_series(profile_, old_, json_);
        json_.end_object();
    }

  private:
    void write_header();
    void write_events();
    void write_derived();
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

// Names, and what each frame and those in it count: now, and in the old profile if there is one.
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
    std::vector<std::uint64_t> parents, handlers, inlined;
    std::vector<std::string> names;
    std::vector<Column> columns(events.size()), old(events.size());
    for (std::uint32_t i = 0; i < numbers.size(); ++i) {
        const StackTree::Frame& frame = tree.frames()[i];
        const Counts counts = Counts(frame.counts).first(columns_),
                     old_counts = Counts(frame.counts).last(columns_);
        // A frame is never larger than the one it is in, so what is left out is whole subtrees.
        if (i != 0 && std::max(share(counts), share(old_counts)) < kLeastFrame) continue;
        numbers[i] = static_cast<std::uint32_t>(names.size());
        parents.push_back(numbers[frame.parent]);
        handlers.push_back(frame.handler);
        inlined.push_back(frame.inlined);
        names.emplace_back(tree.name(frame));
        for (std::size_t event = 0; event < events.size(); ++event) {
            columns[event].push_back(counts[events[event]]);
            old[event].push_back(old_counts[events[event]]);
        }
    }
    json_.begin_object("flame");
    json_.numbers("events", events);
    json_.numbers("byStack", by_stack);
    json_.numbers("parent", parents);
    json_.numbers("handler", handlers);
    json_.numbers("inlined", inlined);
    json_.texts("name", names);
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

}  // namespace assay::report
