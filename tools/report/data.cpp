#include "tools/report/data.h"

#include "framework/events/formula.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/output/json_writer.h"
#include "tools/profile/stack_tree.h"
#include "tools/report/calls.h"
#include "tools/report/groups.h"
#include "tools/sources/source_files.h"
#include "tools/sources/source_finder.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

namespace assay::report {

namespace {

// What a page can hold and a reader wants to see; the rest is added up, or left out and said so.
constexpr std::size_t kMostFunctions = 20'000;
constexpr std::size_t kMostLines = 200'000;
constexpr std::size_t kMostSourceBytes = std::size_t{16} << 20;
constexpr std::size_t kMostValueLists = 2'000;
// Frames that have less than this share of every event are not drawn: they would be narrower than
// a hundredth of a pixel.
constexpr double kLeastFrame = 1e-5;
constexpr double kLeastCalls = 1e-4;  // share of a total, of functions and calls in their view
constexpr std::size_t kMostStackDepth = 256;
constexpr std::uint32_t kContextLines = 6;  // of source around those with counts

using Column = std::vector<std::uint64_t>;

struct FunctionRow {
    std::string_view file, name;
    Column counts, old;
};

// A line of a source file; a function's part of it, where there are several.
struct SourceRow {
    std::uint32_t line;
    std::uint32_t function;  // index in functions_
    CountStore::Row row;
};

class Document {
  public:
    Document(const Content& content, const Options& options, Sink& sink)
        : profile_(content.profile),
          old_(content.old),
          groups_(content.groups),
          phases_(content.phases),
          options_(options),
          columns_(profile_.events().size()),
          counts_(columns_),
          finder_(options.where, profile_.objects()),
          json_(sink, JsonWriter::Texts::kPrintable) {}

    void write() {
        json_.begin_object();
        write_header();
        write_functions();
        write_sources();
        write_flame_graph();
        json_.key("calls");
        if (old_)
            json_.null();  // only one profile's calls can be shown
        else
            write_calls(profile_, kLeastCalls, json_);
        json_.key("groups");
        write_groups(groups_, json_);
        write_values();
        write_phases();
        json_.end_object();
    }

  private:
    void write_header();
    void write_events();
    void write_derived();
    void collect_functions();
    void write_functions();
    void write_columns(std::string_view key, const std::vector<Column>& columns);
    void write_sources();
    void write_source(Strings::Id file, const std::vector<SourceRow>& rows);
    void write_text(const std::string& text, const std::vector<SourceRow>& rows);
    void say_what_is_left_out() const;
    void write_flame_graph();
    void write_values();
    void write_phases();
    double share(Counts counts) const;

    const WholeProfile& profile_;
    const WholeProfile* old_;
    const GroupProfile* groups_;
    const std::optional<Phases>& phases_;
    const Options& options_;
    std::size_t columns_;
    std::vector<std::uint64_t> counts_;  // scratch
    SourceFinder finder_;
    std::vector<std::string> left_out_;  // files that may be no sources
    JsonWriter json_;
    std::vector<FunctionRow> functions_;      // the highest shares first
    std::vector<std::uint32_t> function_of_;  // by index in the profile
    std::size_t functions_left_out_ = 0, source_bytes_ = 0;
};

// The largest share of a total that the counts have.
double Document::share(Counts counts) const {
    double largest = 0;
    for (std::size_t i = 0; i < columns_; ++i)
        if (profile_.totals()[i] != 0)
            largest = std::max(largest, static_cast<double>(counts[i]) /
                                            static_cast<double>(profile_.totals()[i]));
    return largest;
}

void Document::write_header() {
    json_.texts("commands", profile_.commands());
    json_.texts("files", profile_.paths());
    json_.texts("incomplete", profile_.incomplete());
    json_.texts("old", old_ ? std::span(old_->paths()) : std::span<const std::string>());
    json_.key("descriptions");
    json_.begin_array();
    for (const auto& [name, text] : profile_.descriptions()) {
        json_.begin_array();
        json_.text(name);
        json_.text(text);
        json_.end_array();
    }
    json_.end_array();
    write_events();
    write_derived();
}

void Document::write_events() {
    json_.key("events");
    json_.begin_array();
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

void Document::write_derived() {
    const auto value_of = [&](const events::Derived& derived, const WholeProfile& profile) {
        return events::Formula(derived.formula, profile_.events()).value(profile.totals());
    };
    json_.key("derived");
    json_.begin_array();
    for (const events::Derived& derived : profile_.derived()) {
        json_.begin_object();
        json_.text("name", derived.name);
        json_.text("unit", derived.unit);
        json_.real("value", value_of(derived, profile_));
        if (old_) json_.real("old", value_of(derived, *old_));
        json_.end_object();
    }
    json_.end_array();
}

// --- Functions

Column sum_of(const WholeProfile& profile, const WholeProfile::Function& function) {
    Column sum(profile.events().size());
    for (std::uint32_t place = function.first_place; place < function.end_place; ++place)
        for (const WholeProfile::Line& line : profile.lines(place))
            profile.counts().add_to(sum, line.row);
    return sum;
}

// Those of the old profile, too. Then sorted, with function_of_ following.
void Document::collect_functions() {
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> indices;
    for (const WholeProfile::Function& function : profile_.functions()) {
        indices[{profile_.text(function.file), profile_.text(function.name)}] = functions_.size();
        functions_.push_back({profile_.text(function.file), profile_.text(function.name),
                              sum_of(profile_, function), Column(columns_)});
    }
    if (old_)
        for (const WholeProfile::Function& function : old_->functions()) {
            const auto [entry, is_new] = indices.try_emplace(
                {old_->text(function.file), old_->text(function.name)}, functions_.size());
            if (is_new)
                functions_.push_back(
                    {entry->first.first, entry->first.second, Column(columns_), Column(columns_)});
            functions_[entry->second].old = sum_of(*old_, function);
        }
    std::vector<double> shares;
    shares.reserve(functions_.size());
    for (const FunctionRow& row : functions_)
        shares.push_back(std::max(share(row.counts), share(row.old)));
    std::vector<std::uint32_t> order(functions_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return shares[a] > shares[b]; });
    function_of_.resize(functions_.size());
    std::vector<FunctionRow> sorted;
    for (const std::uint32_t index : order) {
        function_of_[index] = static_cast<std::uint32_t>(sorted.size());
        sorted.push_back(std::move(functions_[index]));
    }
    functions_ = std::move(sorted);
}

void Document::write_functions() {
    collect_functions();
    const std::size_t shown = std::min(functions_.size(), kMostFunctions);
    functions_left_out_ = functions_.size() - shown;
    json_.key("functions");
    json_.begin_object();
    json_.number("leftOut", functions_left_out_);
    std::vector<Column> counts(columns_), old(columns_);
    std::vector<std::string> files, names;
    for (std::size_t i = 0; i < shown; ++i) {
        files.emplace_back(functions_[i].file);
        names.emplace_back(functions_[i].name);
        for (std::size_t event = 0; event < columns_; ++event) {
            counts[event].push_back(functions_[i].counts[event]);
            old[event].push_back(functions_[i].old[event]);
        }
    }
    json_.texts("file", files);
    json_.texts("name", names);
    write_columns("counts", counts);
    if (old_) write_columns("old", old);
    json_.end_object();
}

void Document::write_columns(std::string_view key, const std::vector<Column>& columns) {
    json_.key(key);
    json_.begin_array();
    for (const Column& column : columns) json_.numbers(column);
    json_.end_array();
}

// --- Sources

void Document::write_sources() {
    std::map<Strings::Id, std::vector<SourceRow>> files;
    std::map<Strings::Id, Column> sums;
    for (std::uint32_t i = 0; i < profile_.functions().size(); ++i) {
        const WholeProfile::Function& function = profile_.functions()[i];
        for (std::uint32_t place = function.first_place; place < function.end_place; ++place)
            for (const WholeProfile::Line& line : profile_.lines(place)) {
                const Strings::Id file = profile_.places()[place].file;
                files[file].push_back({line.line, function_of_[i], line.row});
                Column& sum = sums[file];
                sum.resize(columns_);
                profile_.counts().add_to(sum, line.row);
            }
    }
    std::vector<Strings::Id> order;
    order.reserve(files.size());
    for (const auto& [file, rows] : files) order.push_back(file);
    std::stable_sort(order.begin(), order.end(),
                     [&](Strings::Id a, Strings::Id b) { return share(sums[a]) > share(sums[b]); });
    json_.key("sources");
    json_.begin_array();
    std::size_t lines = 0;
    for (const Strings::Id file : order) {
        std::vector<SourceRow>& rows = files[file];
        lines += rows.size();
        if (lines > kMostLines) break;
        std::stable_sort(rows.begin(), rows.end(),
                         [](const SourceRow& a, const SourceRow& b) { return a.line < b.line; });
        write_source(file, rows);
    }
    json_.end_array();
    if (!left_out_.empty()) say_what_is_left_out();
}

void Document::say_what_is_left_out() const {
    constexpr std::size_t kMostNamed = 8;
    const std::size_t named = std::min(left_out_.size(), kMostNamed);
    std::string names = join(std::span(left_out_).first(named), ", ");
    if (named < left_out_.size()) names += fmt::format(" and {} more", left_out_.size() - named);
    log::problem(
        fmt::format("left out of the report, as nothing says that they are sources: {}; {}", names,
                    kHowToShow));
}

void Document::write_source(Strings::Id file, const std::vector<SourceRow>& rows) {
    const std::string name(profile_.text(file));
    json_.begin_object();
    json_.text("name", name);
    json_.key("lines");
    json_.begin_array();
    for (const SourceRow& row : rows) json_.number(row.line);
    json_.end_array();
    json_.key("functions");
    json_.begin_array();
    for (const SourceRow& row : rows) json_.number(row.function);
    json_.end_array();
    std::vector<Column> columns(columns_);
    for (const SourceRow& row : rows) {
        profile_.counts().read(row.row, counts_);
        for (std::size_t event = 0; event < columns_; ++event)
            columns[event].push_back(counts_[event]);
    }
    write_columns("counts", columns);
    using Status = SourceFinder::Status;
    const SourceFinder::Source source =
        name == kUnknownFile ? SourceFinder::Source{Status::kNotFound, {}} : finder_.find(name);
    json_.boolean("leftOut", source.status == Status::kLeftOut);
    json_.boolean("found", source.status == Status::kFound);
    if (source.status == Status::kLeftOut) left_out_.push_back(name);
    const auto text = source.status == Status::kFound && source_bytes_ < kMostSourceBytes
                          ? read_source_or_warn(source.path)
                          : std::nullopt;
    if (text) {
        json_.text("path", source.path.string());
        json_.text("warning", warning_if_newer(name, source.path, options_.profiles));
        write_text(*text, rows);
    }
    json_.end_object();
}

// Pieces of the text: the number of the first line, and the lines, of those around counts.
void Document::write_text(const std::string& text, const std::vector<SourceRow>& rows) {
    json_.key("pieces");
    json_.begin_array();
    std::uint32_t number = 0;
    bool open = false;
    auto next = rows.begin();
    auto last = rows.end();
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        ++number;
        while (next != rows.end() && next->line <= number) last = next++;
        const bool near =
            (last != rows.end() && last->line != 0 && number - last->line <= kContextLines) ||
            (next != rows.end() && next->line - number <= kContextLines);
        if (near && !open) {
            json_.begin_array();
            json_.number(number);
            json_.begin_array();
        } else if (!near && open) {
            json_.end_array();
            json_.end_array();
        }
        open = near;
        if (near) {
            std::string_view line = std::string_view(text).substr(begin, end - begin);
            if (line.ends_with('\r')) line.remove_suffix(1);
            json_.text(line);
            source_bytes_ += line.size();
        }
        begin = end + 1;
    }
    if (open) {
        json_.end_array();
        json_.end_array();
    }
    json_.end_array();
    json_.number("length", number);
}

// --- Flame graph

// Names, and what each frame and those in it count: now, and in the old profile if there is one.
void Document::write_flame_graph() {
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
    json_.key("flame");
    json_.begin_object();
    json_.numbers("events", events);
    json_.numbers("byStack", by_stack);
    json_.numbers("parent", parents);
    json_.numbers("handler", handlers);
    json_.numbers("inlined", inlined);
    json_.texts("name", names);
    write_columns("counts", columns);
    if (old_) write_columns("old", old);
    json_.end_object();
}

// --- Values

void Document::write_values() {
    std::vector<const WholeProfile::Values*> lists;
    for (const WholeProfile::Values& values : profile_.values()) lists.push_back(&values);
    std::stable_sort(lists.begin(), lists.end(),
                     [](const auto* a, const auto* b) { return a->list.total > b->list.total; });
    const std::size_t shown = std::min(lists.size(), kMostValueLists);
    json_.number("valuesLeftOut", lists.size() - shown);
    lists.resize(shown);
    json_.key("values");
    json_.begin_array();
    for (const WholeProfile::Values* values : lists) {
        const WholeProfile::Place& place = profile_.places()[values->place];
        json_.begin_object();
        json_.text("list", values->list.name);
        json_.text("function", profile_.text(place.function));
        json_.text("file", profile_.text(place.file));
        json_.number("line", values->line);
        json_.text("object", profile_.objects()[values->object].path);
        json_.address("address", values->address);
        json_.number("total", values->list.total);
        json_.number("error", values->list.error);
        json_.key("values");
        json_.begin_array();
        for (const events::HotValue& each : values->list.values) {
            json_.begin_array();
            json_.address(each.value);
            json_.number(each.count);
            json_.end_array();
        }
        json_.end_array();
        json_.end_object();
    }
    json_.end_array();
}

// --- Phases

void Document::write_phases() {
    json_.key("phases");
    if (!phases_) {
        json_.null();
        return;
    }
    json_.begin_object();
    json_.numbers("instructions", phases_->instructions);
    json_.numbers("phases", phases_->phases);
    json_.boolean("labelled", phases_->labelled);
    json_.key("points");
    json_.begin_array();
    for (const SimulationPoint& point : phases_->points) {
        json_.begin_object();
        json_.number("interval", point.interval);
        json_.number("cluster", point.cluster);
        json_.real("weight", point.weight);
        json_.end_object();
    }
    json_.end_array();
    json_.end_object();
}

}  // namespace

void write_data(const Content& content, const Options& options, Sink& sink) {
    Document(content, options, sink).write();
}

}  // namespace assay::report
