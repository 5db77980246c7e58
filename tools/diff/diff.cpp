#include "tools/diff/diff.h"

#include "framework/events/writer.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/diff/breakdown.h"
#include "tools/diff/change_table.h"
#include "tools/diff/changes.h"
#include "tools/profile/function_profile.h"
#include "tools/profile/profile_files.h"
#include "tools/table/json.h"
#include "tools/table/sort.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <limits>

namespace assay::diff {

namespace {

void check(const FunctionProfile& profile, const std::string& path) {
    if (profile.header().difference)
        throw Error(fmt::format("{} is a difference already; give two profiles", path));
    for (const std::uint64_t total : profile.totals())
        if (total > std::numeric_limits<std::int64_t>::max())
            throw Error(fmt::format("{}: a total exceeds 63 bits, which differences have", path));
}

std::vector<SortColumn> sorting(const Options& options, const events::Header& header) {
    return sort_columns(options.sort, options.threshold, header);
}

std::vector<std::size_t> shown_columns(const Options& options, const events::Header& header) {
    std::vector<std::size_t> shown = shown_events(options.show, header);
    for (const std::size_t column : shown)
        if (column >= header.events.size())
            throw Error(fmt::format("--show: '{}' is calculated from counts; show events",
                                    shown_name(column, header)));
    return shown;
}

void write_header(const Options& options, const FunctionProfile& before,
                  const FunctionProfile& after, Output& output) {
    output.section("Difference");
    const auto describe = [&](std::string_view name, const std::string& path,
                              const FunctionProfile& profile) {
        output.write(fmt::format("{}  {}  ({})\n", name, printable(path),
                                 printable(profile.header().command)));
        for (const std::string& reason : profile.incomplete())
            output.write(
                fmt::format("INCOMPLETE, not the counts of a whole run: {}\n", printable(reason)));
    };
    describe("Old:", options.old_path, before);
    describe("New:", options.new_path, after);
    const auto& old_ones = before.descriptions();
    for (const auto& [name, text] : after.descriptions()) {
        const auto other =
            std::find_if(old_ones.begin(), old_ones.end(),
                         [&name = name](const auto& each) { return each.first == name; });
        if (other != old_ones.end() && other->second != text)
            output.write(
                fmt::format("Warning: the profiles were made differently: {}: \"{}\" and "
                            "\"{}\"\n",
                            printable(name), printable(other->second), printable(text)));
    }
    output.write("\n");
}

// The innermost frames of a stack, the outermost first.
std::string stack_text(const StackTree& stacks, std::uint32_t frame) {
    constexpr std::size_t kMostShown = 8;
    std::vector<std::string_view> names = stacks.path(frame);
    const bool is_cut = names.size() > kMostShown;
    if (is_cut) names.erase(names.begin(), names.end() - kMostShown);
    std::string text = is_cut ? "..." : "";
    for (const std::string_view name : names) text += (text.empty() ? "" : " > ") + printable(name);
    return text;
}

void write_stacks(const Options& options, const FunctionProfile& before, const Breakdown& breakdown,
                  Output& output) {
    if (!breakdown.has_stacks()) return;
    const events::Header& header = before.header();
    const std::vector<Change> changes = breakdown.stack_changes();
    const std::vector<const Change*> chosen =
        important(changes, sorting(options, header), before.totals());
    ChangeTable table(header, shown_columns(options, header), options.color);
    for (const Change* change : chosen) table.fit(*change);
    output.write("\n");
    output.section("Call stacks that changed");
    if (chosen.empty()) output.write("none by as much as the threshold\n");
    if (!chosen.empty()) output.write(table.heading("calls, the outermost first"));
    for (const Change* change : chosen)
        output.write(table.row(
            *change,
            stack_text(breakdown.stacks(), static_cast<std::uint32_t>(change - changes.data()))));
}

void write_values(const Options& options, const Breakdown& breakdown, Output& output) {
    const std::vector<ValueChange> changes = breakdown.value_changes(options.threshold);
    if (changes.empty()) return;
    output.write("\n");
    output.section("Values that changed");
    constexpr std::size_t kCountWidth = 15, kValueWidth = 20;
    output.write(fmt::format("{:>{}}  {:>{}}  {:>{}}  {}\n", "old", kCountWidth, "new", kCountWidth,
                             "value", kValueWidth, "list and function"));
    for (const ValueChange& change : changes)
        output.write(
            fmt::format("{:>{}}  {:>{}}  {:>{}}  {} {}:{}\n", with_thousands(change.before),
                        kCountWidth, with_thousands(change.after), kCountWidth,
                        fmt::format("{:#x}", change.value), kValueWidth, printable(change.list),
                        printable(change.file), printable(change.function)));
}

std::string place_text(const Change& change) {
    std::string text = printable(change.file) + ":" + printable(change.function);
    const auto& [file, function] = change.former;
    if (function.empty()) return text;
    text += " (was ";
    if (file != change.file) text += printable(file) + ":";
    return text + printable(function) + ")";
}

void write_functions(const Options& options, const FunctionProfile& before,
                     const std::vector<Change>& changes, Output& output) {
    const events::Header& header = before.header();
    const std::vector<const Change*> chosen =
        important(changes, sorting(options, header), before.totals());
    ChangeTable table(header, shown_columns(options, header), options.color);
    for (const Change* change : chosen) table.fit(*change);
    output.section("Functions that changed");
    if (chosen.empty()) output.write("none by as much as the threshold\n");
    if (!chosen.empty()) output.write(table.heading("file:function"));
    for (const Change* change : chosen) output.write(table.row(*change, place_text(*change)));
}

void write_totals(const Options& options, const FunctionProfile& before,
                  const FunctionProfile& after, Output& output) {
    const events::Header& header = before.header();
    const Change total = {"", "", before.totals(), after.totals()};
    ChangeTable totals(header, shown_columns(options, header), options.color);
    totals.fit(total);
    totals.fit(before.totals());
    totals.fit(after.totals());
    output.section("Totals");
    output.write(totals.heading(""));
    output.write(totals.row(before.totals(), "old"));
    output.write(totals.row(after.totals(), "new"));
    output.write(totals.row(total, "changed") + "\n");
}

// Two's complement, as a file of differences has them.
std::vector<std::uint64_t> differences(const Change& change) {
    std::vector<std::uint64_t> row(change.before.size());
    for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = static_cast<std::uint64_t>(change.difference(i));
    return row;
}

// Contexts that changed, or lead to some that did, by their functions, as these were compared.
// Where the calls are, which is not the same in both profiles, is the address 0 of the only object.
void write_stacks_to_file(const Breakdown& breakdown, events::Writer& writer) {
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
            differences(changes[i]));
    }
}

// As cg_diff writes them: one line of each function, of line 0.
void write_file(const Options& options, const FunctionProfile& before, const FunctionProfile& after,
                const std::vector<Change>& changes, const Breakdown& breakdown) {
    events::Header header = before.header();
    header.descriptions = {{"Files compared", options.old_path + "; " + options.new_path}};
    header.command = before.header().command + "; " + after.header().command;
    header.derived.clear();
    header.objects.clear();
    if (breakdown.has_stacks()) header.objects = {{"[wherever it is called]", ""}};
    header.pid = 0;
    header.incomplete = join(before.incomplete(), "; ");
    if (!header.incomplete.empty() && !after.incomplete().empty()) header.incomplete += "; ";
    header.incomplete += join(after.incomplete(), "; ");
    header.difference = true;
    events::Writer writer(options.out, header);
    for (const Change& change : changes) {
        writer.location(change.file, change.function);
        writer.line(0, differences(change));
    }
    write_stacks_to_file(breakdown, writer);
    writer.finish();
}

void write_json(const Options& options, const FunctionProfile& before, const FunctionProfile& after,
                const std::vector<Change>& changes, const Breakdown& breakdown) {
    const events::Header& header = before.header();
    const std::vector<std::size_t> shown = shown_columns(options, header);
    Sink sink("");
    JsonWriter json(sink);
    const auto write_both = [&](Counts old_counts, Counts new_counts) {
        json.key("old");
        write_counts(header, shown, old_counts, json);
        json.key("new");
        write_counts(header, shown, new_counts, json);
    };
    json.begin_object();
    json.text("format", "assay-diff");
    json.number("version", 1);
    json.text("oldFile", options.old_path);
    json.text("newFile", options.new_path);
    write_event_list(header, shown, json);
    json.key("totals");
    json.begin_object();
    write_both(before.totals(), after.totals());
    json.end_object();
    json.key("functions");
    json.begin_array();
    for (const Change* change : important(changes, sorting(options, header), before.totals())) {
        json.begin_object();
        json.text("file", change->file);
        json.text("function", change->function);
        if (!change->former.function.empty()) {
            json.text("oldFile", change->former.file);
            json.text("oldFunction", change->former.function);
        }
        write_both(change->before, change->after);
        json.end_object();
    }
    json.end_array();
    json.key("stacks");
    json.begin_array();
    const std::vector<Change> stacks = breakdown.stack_changes();
    for (const Change* change : important(stacks, sorting(options, header), before.totals())) {
        json.begin_object();
        json.key("functions");
        json.begin_array();
        for (const std::string_view name :
             breakdown.stacks().path(static_cast<std::uint32_t>(change - stacks.data())))
            json.text(name);
        json.end_array();
        write_both(change->before, change->after);
        json.end_object();
    }
    json.end_array();
    json.key("values");
    json.begin_array();
    for (const ValueChange& change : breakdown.value_changes(options.threshold)) {
        json.begin_object();
        json.text("list", change.list);
        json.text("file", change.file);
        json.text("function", change.function);
        json.address("value", change.value);
        json.number("old", change.before);
        json.number("new", change.after);
        json.end_object();
    }
    json.end_array();
    json.end_object();
    sink.write("\n");
    sink.finish();
}

}  // namespace

void diff(const Options& options, Output& output) {
    FunctionProfile before(options.file_names, options.function_names),
        after(options.file_names, options.function_names);
    Breakdown breakdown(options.file_names, options.function_names);
    before.pass_on(breakdown);
    after.pass_on(breakdown);
    for (const std::string& path : profile_files({options.old_path}).paths) before.add_file(path);
    for (const std::string& path : profile_files({options.new_path}).paths) after.add_file(path);
    check(before, options.old_path);
    check(after, options.new_path);
    events::check_same_events(after.header(), options.new_path, before.header(), options.old_path);
    Changes all = changes_of(before, after, options.match);
    breakdown.match(all.functions, options.match);
    const std::vector<Change>& changes = all.rows;
    if (!options.out.empty()) return write_file(options, before, after, changes, breakdown);
    if (options.json) return write_json(options, before, after, changes, breakdown);
    write_header(options, before, after, output);
    write_totals(options, before, after, output);
    write_functions(options, before, changes, output);
    write_stacks(options, before, breakdown, output);
    write_values(options, breakdown, output);
    output.finish();
}

}  // namespace assay::diff

namespace assay {

int diff_main(int argc, char** argv) {
    const std::optional<diff::Options> options = diff::parse_options(argc, argv);
    if (!options) return 0;
    Output output(stdout, options->pager ? Output::Paging::kIfLong : Output::Paging::kNever);
    diff::diff(*options, output);
    return 0;
}

}  // namespace assay
