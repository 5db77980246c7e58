#include "tools/table/json.h"
#include "framework/support/text.h"
#include "tools/diff/writers.h"

#include <cstdint>

namespace assay::diff {
namespace {

void write_verdicts(const Comparison& comparison, JsonWriter& json) {
    json.key("limits");
    json.begin_array();
    for (const Verdict& verdict : comparison.verdicts()) {
        json.begin_object();
        json.text("limit", verdict.limit->text);
        json.text("event", verdict.event);
        json.text("kind", verdict.limit->kind.empty() ? "program" : verdict.limit->kind);
        json.text("name", verdict.subject);
        json.text("old", verdict.before);
        json.text("new", verdict.after);
        json.text("change", verdict.change);
        json.boolean("exceeded", verdict.is_exceeded);
        json.end_object();
    }
    json.end_array();
}

void write(const Options& options, const Comparison& comparison, JsonWriter& json) {
    const FunctionProfile &before = comparison.before(), &after = comparison.after();
    const Breakdown& breakdown = comparison.breakdown();
    const events::Header& header = comparison.header();
    const std::vector<std::size_t>& shown = comparison.shown();
    const auto write_both = [&](Counts old_counts, Counts new_counts) {
        json.key("old");
        write_counts(header, shown, old_counts, json);
        json.key("new");
        write_counts(header, shown, new_counts, json);
    };
    json.begin_object();
    json.text("format", "assay-diff");
    json.number("version", 1);
    json.text("oldFile", join(comparison.old_paths(), ", "));
    json.text("newFile", join(comparison.new_paths(), ", "));
    write_event_list(header, shown, json);
    json.key("totals");
    json.begin_object();
    write_both(before.totals(), after.totals());
    json.end_object();
    write_verdicts(comparison, json);
    json.key("functions");
    json.begin_array();
    for (const Change* change : comparison.important_functions()) {
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
    if (!options.by.empty()) {
        json.key("groups");
        json.begin_array();
        for (const Change* change : comparison.important_groups()) {
            json.begin_object();
            json.text("kind", change->file);
            json.text("name", change->function);
            write_both(change->before, change->after);
            json.end_object();
        }
        json.end_array();
    }
    json.key("stacks");
    json.begin_array();
    const std::vector<Change> stacks = breakdown.stack_changes();
    for (const Change* change : comparison.important_stacks(stacks)) {
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
    json.key("programs");
    json.begin_array();
    for (const Programs::Program& each : programs.all) {
        json.begin_object();
        json.text("command", each.command);
        json.key("difference");
        write(options, *each.comparison, json);
        json.end_object();
    }
    json.end_array();
    json.texts("onlyOld", programs.only_old);
    json.texts("onlyNew", programs.only_new);
    json.end_object();
    sink.write("\n");
}

}  // namespace assay::diff
