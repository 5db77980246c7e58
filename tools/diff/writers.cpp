#include "tools/diff/writers.h"

#include "framework/events/writer.h"
#include "framework/support/text.h"
#include "tools/diff/changes.h"
#include "tools/table/brief.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

namespace assay::diff {
namespace {

// Differences from event `first` on as two's complement, as files of differences have them.
std::vector<std::uint64_t> differences(const Change& change, std::size_t first) {
    std::vector<std::uint64_t> row;
    for (std::size_t i = first; i < change.before.size(); ++i)
        row.push_back(static_cast<std::uint64_t>(change.difference(i)));
    return row;
}

// Writes contexts that changed or lead to changed contexts. Calls have the address 0 of the only
// object, because their addresses differ between the profiles.
void write_stacks(const Breakdown& breakdown, std::size_t first, events::Writer& writer) {
    if (!breakdown.has_stacks()) return;
    const StackTree& stacks = breakdown.stacks();
    const std::vector<Change> changes = breakdown.stack_changes();
    std::vector<bool> shown(changes.size());
    for (std::size_t i = changes.size(); i-- > 1;) {
        if (!std::ranges::equal(changes[i].before, changes[i].after)) shown[i] = true;
        if (shown[i]) shown[stacks.frames()[i].parent] = true;
    }
    std::vector<std::uint32_t> numbers(changes.size());
    std::uint32_t number = 0;
    for (std::uint32_t i = 1; i < changes.size(); ++i) {
        if (!shown[i]) continue;
        numbers[i] = ++number;
        const StackTree::Frame& frame = stacks.frames()[i];
        writer.stack(
            {number, numbers[frame.parent], StackTree::kind(frame), 0, 0, 0, stacks.name(frame)},
            differences(changes[i], first));
    }
}

}  // namespace

void write_events_file(const Options& options, const Comparison& comparison) {
    const Profile &before = comparison.before(), &after = comparison.after();
    events::Header header = before.header();
    header.descriptions = {{"Files compared", options.old_path + "; " + options.new_path}};
    header.command = before.header().command + "; " + after.header().command;
    header.derived.clear();
    // Readers calculate the estimate again.
    const std::size_t first = header.events.front().formula.empty() ? 0 : 1;
    if (first != 0) {
        const events::Event& cycles = header.events.front();
        header.derived = {{cycles.name, cycles.formula, cycles.unit}};
        header.events.erase(header.events.begin());
    }
    header.objects.clear();
    header.series.clear();
    if (comparison.breakdown().has_stacks()) header.objects = {{"[wherever it is called]", ""}};
    header.pid = 0;
    header.incomplete = join(before.incomplete(), "; ");
    if (!header.incomplete.empty() && !after.incomplete().empty()) header.incomplete += "; ";
    header.incomplete += join(after.incomplete(), "; ");
    header.difference = true;
    events::Writer writer(options.out, header);
    for (const Change& change : comparison.functions()) {
        writer.location(change.file, change.function);
        writer.line(0, differences(change, first));
    }
    write_stacks(comparison.breakdown(), first, writer);
    writer.finish();
}

namespace {

void write_verdicts(const Comparison& comparison, JsonWriter& json) {
    json.objects("limits", comparison.verdicts(), [&](const Verdict& verdict) {
        json.text("limit", verdict.limit->text);
        json.text("event", verdict.event);
        json.text("kind", verdict.limit->kind.empty() ? "program" : verdict.limit->kind);
        json.text("name", verdict.subject);
        json.text("old", verdict.before);
        json.text("new", verdict.after);
        json.text("change", verdict.change);
        json.boolean("exceeded", verdict.is_exceeded);
    });
}

void write(const Options& options, const Comparison& comparison, JsonWriter& json) {
    const Profile &before = comparison.before(), &after = comparison.after();
    const Breakdown& breakdown = comparison.breakdown();
    const events::Header& header = comparison.header();
    const std::vector<std::size_t>& shown = comparison.shown();
    const auto write_both = [&](Counts old_counts, Counts new_counts) {
        write_counts("old", header, shown, old_counts, json);
        write_counts("new", header, shown, new_counts, json);
    };
    json.begin_object();
    json.text("format", "assay-diff");
    json.number("version", 1);
    json.text("oldFile", join(comparison.old_paths(), ", "));
    json.text("newFile", join(comparison.new_paths(), ", "));
    json.texts("warnings", comparison.warnings());
    write_event_list(header, shown, json);
    json.begin_object("totals");
    write_both(before.totals(), after.totals());
    json.end_object();
    write_verdicts(comparison, json);
    json.objects("functions", comparison.important_functions(), [&](const Change* change) {
        json.text("file", change->file);
        json.text("function", change->function);
        if (!change->former.function.empty()) {
            json.text("oldFile", change->former.file);
            json.text("oldFunction", change->former.function);
        }
        write_both(change->before, change->after);
    });
    if (!options.by.empty()) {
        json.objects("groups", comparison.important_groups(), [&](const Change* change) {
            json.text("kind", change->file);
            json.text("name", change->function);
            write_both(change->before, change->after);
        });
    }
    json.begin_array("stacks");
    const std::vector<Change> stacks = breakdown.stack_changes();
    for (const Change* change : comparison.important_stacks(stacks)) {
        json.begin_object();
        json.begin_array("functions");
        for (const std::string_view name :
             breakdown.stacks().path(static_cast<std::uint32_t>(change - stacks.data())))
            json.text(name);
        json.end_array();
        const auto& frame = breakdown.stacks().frames()[change - stacks.data()];
        json.number("oldCalls", frame.calls[0]);
        json.number("newCalls", frame.calls[1]);
        write_both(change->before, change->after);
        json.end_object();
    }
    json.end_array();
    json.objects("values", breakdown.value_changes(options.threshold),
                 [&](const ValueChange& change) {
                     json.text("list", change.list);
                     json.text("file", change.file);
                     json.text("function", change.function);
                     json.address("value", change.value);
                     json.number("old", change.before);
                     json.number("new", change.after);
                 });
    json.end_object();
}

}  // namespace

void write_json(const Options& options, const Comparison& comparison, Sink& sink) {
    JsonWriter json(sink);
    write(options, comparison, json);
    sink.write("\n");
}

void write_json(const Options& options, const Programs& programs, Sink& sink) {
    JsonWriter json(sink);
    json.begin_object();
    json.text("format", "assay-diff-programs");
    json.number("version", 1);
    json.objects("programs", programs.all, [&](const Programs::Program& each) {
        json.text("command", each.command);
        json.key("difference");
        write(options, *each.comparison, json);
    });
    json.texts("onlyOld", programs.only_old);
    json.texts("onlyNew", programs.only_new);
    json.end_object();
    sink.write("\n");
}

namespace {

constexpr std::string_view kAll = "--full";  // shows all rows

// The comparison that a text shows, and the columns of its tables.
struct View {
    const Options& options;
    const Comparison& comparison;
    std::vector<std::size_t> shown;  // events
    std::size_t rows;                // of each table

    void title(std::string_view text, Output& output) const {
        if (options.full) output.section(text);
    }
};

// The events that cause most of the changes, unless the user wants others.
std::vector<std::size_t> events_to_show(const Options& options, const Comparison& comparison,
                                        std::span<const Change> totals) {
    if (options.full || !options.show.empty() || !options.by.empty()) return comparison.shown();
    std::vector<std::uint64_t> sizes(comparison.header().events.size());
    for (const Change& change : totals)
        for (std::size_t i = 0; i < sizes.size(); ++i)
            sizes[i] += change.before[i] > change.after[i] ? change.before[i] - change.after[i]
                                                           : change.after[i] - change.before[i];
    return important_events(comparison.sort().front().event, comparison.header(), sizes);
}

View view_of(const Options& options, const Comparison& comparison) {
    // Lines around the tables and of each table without its rows.
    constexpr std::size_t kAround = 9, kOfTable = 2, kLeast = 5;
    const std::size_t tables = comparison.breakdown().has_stacks() && options.by.empty() ? 2 : 1;
    const std::size_t page = std::max(lines_of_page(), kAround) - kAround;
    const std::size_t rows = std::max(page / tables, kOfTable + kLeast) - kOfTable;
    const Change total = comparison.totals();
    return {options, comparison, events_to_show(options, comparison, {&total, 1}),
            options.full ? std::numeric_limits<std::size_t>::max() : rows};
}

void write_header(const View& view, Output& output) {
    const Comparison& comparison = view.comparison;
    view.title("Difference", output);
    const auto describe = [&](std::string_view name, const std::vector<std::string>& paths,
                              const Profile& profile) {
        output.write(fmt::format("{}  {}  ({})\n", name, printable(join(paths, ", ")),
                                 printable(profile.header().command)));
    };
    describe("Old:", comparison.old_paths(), comparison.before());
    describe("New:", comparison.new_paths(), comparison.after());
    for (const std::string& warning : comparison.warnings())
        output.write(printable(warning) + "\n");
    output.write("\n");
}

// The innermost frames of a stack, the outermost first.
std::string stack_text(const Comparison& comparison, std::uint32_t frame) {
    constexpr std::size_t kMostShown = 8;
    const Breakdown& breakdown = comparison.breakdown();
    const StackTree& stacks = breakdown.stacks();
    std::vector<std::string_view> names = stacks.path(frame);
    const bool is_cut = names.size() > kMostShown;
    if (is_cut) names.erase(names.begin(), names.end() - kMostShown);
    std::string text = is_cut ? "..." : "";
    for (const std::string_view name : names)
        text += (text.empty() ? "" : " > ") + printable(comparison.names()(name));
    const auto [before, after] = stacks.frames()[frame].calls;
    if (breakdown.counts_calls() && before != after)
        text += fmt::format("  ({}x -> {}x)", with_thousands(before), with_thousands(after));
    return text;
}

template <typename Text>
void write_changes(const View& view, const std::vector<const Change*>& changes,
                   std::string_view heading, Output& output, const Text& text_of) {
    const auto chosen = std::span(changes).first(std::min(changes.size(), view.rows));
    ChangeTable table(view.comparison.header(), view.shown, view.options.color);
    for (const Change* change : chosen) table.fit(*change);
    if (chosen.empty()) output.write("no change reaches the threshold\n");
    if (!chosen.empty()) output.write(table.heading(heading));
    for (const Change* change : chosen) output.write(table.row(*change, text_of(*change)));
    write_left_out(changes.size() - chosen.size(), output, kAll);
}

void write_stacks(const View& view, Output& output) {
    const Breakdown& breakdown = view.comparison.breakdown();
    if (!breakdown.has_stacks()) return;
    const std::vector<Change> changes = breakdown.stack_changes();
    const std::vector<const Change*> important = view.comparison.important_stacks(changes);
    if (important.empty() && !view.options.full) return;
    output.write("\n");
    view.title("Call stacks that changed", output);
    write_changes(view, important, "calls, the outermost first", output, [&](const Change& change) {
        return stack_text(view.comparison, static_cast<std::uint32_t>(&change - changes.data()));
    });
}

void write_values(const View& view, Output& output) {
    const Comparison& comparison = view.comparison;
    const std::vector<ValueChange> changes =
        comparison.breakdown().value_changes(view.options.threshold);
    if (changes.empty()) return;
    output.write("\n");
    view.title("Values that changed", output);
    constexpr std::size_t kCountWidth = 15, kValueWidth = 20;
    output.write(fmt::format("{:>{}}  {:>{}}  {:>{}}  {}\n", "old", kCountWidth, "new", kCountWidth,
                             "value", kValueWidth, "list and function"));
    const auto shown = std::span(changes).first(std::min(changes.size(), view.rows));
    for (const ValueChange& change : shown)
        output.write(
            fmt::format("{:>{}}  {:>{}}  {:>{}}  {} {}:{}\n", with_thousands(change.before),
                        kCountWidth, with_thousands(change.after), kCountWidth,
                        fmt::format("{:#x}", change.value), kValueWidth, printable(change.list),
                        printable(change.file), printable(comparison.names()(change.function))));
    write_left_out(changes.size() - shown.size(), output, kAll);
}

void write_totals(const View& view, Output& output) {
    const Change total = view.comparison.totals();
    ChangeTable totals(view.comparison.header(), view.shown, view.options.color);
    totals.fit(total);
    totals.fit(total.before);
    totals.fit(total.after);
    view.title("Totals", output);
    output.write(totals.heading(""));
    output.write(totals.row(total.before, "old"));
    output.write(totals.row(total.after, "new"));
    output.write(totals.row(total, "changed") + "\n");
}

// "parse (2 limits exceeded)"
std::string program_text(const Programs::Program& program) {
    std::size_t exceeded = 0;
    for (const Verdict& verdict : program.comparison->verdicts()) exceeded += verdict.is_exceeded;
    std::string text = printable(program.command);
    if (exceeded != 0)
        text += fmt::format("  ({} exceeded)",
                            exceeded == 1 ? "a limit is" : fmt::format("{} limits", exceeded));
    return text;
}

}  // namespace

void write_text(const Options& options, const Comparison& comparison, Output& output) {
    const View view = view_of(options, comparison);
    write_header(view, output);
    write_totals(view, output);
    if (!options.by.empty()) {
        view.title(fmt::format("Counts by {} that changed", options.by), output);
        return write_changes(
            view, comparison.important_groups(), options.by, output,
            [&](const Change& change) { return printable(comparison.group_text(change)); });
    }
    view.title("Functions that changed", output);
    write_changes(view, comparison.important_functions(), "file:function", output,
                  [&](const Change& change) { return comparison.place_text(change); });
    write_stacks(view, output);
    write_values(view, output);
}

void write_text(const Options& options, const Programs& programs, Output& output) {
    if (options.full) output.section("Programs");
    const Comparison& first = *programs.all.front().comparison;
    std::vector<Change> totals;
    for (const Programs::Program& each : programs.all) totals.push_back(each.comparison->totals());
    const std::vector<std::size_t> shown = events_to_show(options, first, totals);
    ChangeTable table(first.header(), shown, options.color);
    for (const Programs::Program& each : programs.all) table.fit(each.comparison->totals());
    output.write(table.heading("command"));
    for (const Programs::Program& each : programs.all)
        output.write(table.row(each.comparison->totals(), program_text(each)));
    for (const auto& [side, commands] :
         {std::pair{"old", &programs.only_old}, std::pair{"new", &programs.only_new}})
        for (const std::string& command : *commands)
            output.write(fmt::format("Only {}: {}\n", side, printable(command)));
    for (const Programs::Program& each : programs.all)
        for (const std::string& warning : each.comparison->warnings())
            output.write(fmt::format("{}: {}\n", printable(each.command), printable(warning)));
}

}  // namespace assay::diff
