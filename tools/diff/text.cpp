#include "framework/support/text.h"
#include "tools/diff/change_table.h"
#include "tools/diff/writers.h"

#include <fmt/core.h>
#include <cstdint>

namespace assay::diff {
namespace {

void write_header(const Comparison& comparison, Output& output) {
    output.section("Difference");
    const auto describe = [&](std::string_view name, const std::vector<std::string>& paths,
                              const FunctionProfile& profile) {
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
std::string stack_text(const StackTree& stacks, std::uint32_t frame) {
    constexpr std::size_t kMostShown = 8;
    std::vector<std::string_view> names = stacks.path(frame);
    const bool is_cut = names.size() > kMostShown;
    if (is_cut) names.erase(names.begin(), names.end() - kMostShown);
    std::string text = is_cut ? "..." : "";
    for (const std::string_view name : names) text += (text.empty() ? "" : " > ") + printable(name);
    return text;
}

// Nothing if there are none, unless a title says so.
template <typename Text>
void write_changes(const Options& options, const Comparison& comparison,
                   const std::vector<const Change*>& chosen, std::string_view heading,
                   Output& output, const Text& text_of) {
    ChangeTable table(comparison.header(), comparison.shown(), options.color);
    for (const Change* change : chosen) table.fit(*change);
    if (chosen.empty()) output.write("none by as much as the threshold\n");
    if (!chosen.empty()) output.write(table.heading(heading));
    for (const Change* change : chosen) output.write(table.row(*change, text_of(*change)));
}

void write_stacks(const Options& options, const Comparison& comparison, Output& output) {
    const Breakdown& breakdown = comparison.breakdown();
    if (!breakdown.has_stacks()) return;
    const std::vector<Change> changes = breakdown.stack_changes();
    output.write("\n");
    output.section("Call stacks that changed");
    write_changes(options, comparison, comparison.important_stacks(changes),
                  "calls, the outermost first", output, [&](const Change& change) {
                      return stack_text(breakdown.stacks(),
                                        static_cast<std::uint32_t>(&change - changes.data()));
                  });
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

void write_totals(const Options& options, const Comparison& comparison, Output& output) {
    const Change total = comparison.totals();
    ChangeTable totals(comparison.header(), comparison.shown(), options.color);
    totals.fit(total);
    totals.fit(total.before);
    totals.fit(total.after);
    output.section("Totals");
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
    write_header(comparison, output);
    write_totals(options, comparison, output);
    if (!options.by.empty()) {
        output.section(fmt::format("Counts by {} that changed", options.by));
        return write_changes(options, comparison, comparison.important_groups(), options.by, output,
                             [](const Change& change) { return printable(change.function); });
    }
    output.section("Functions that changed");
    write_changes(options, comparison, comparison.important_functions(), "file:function", output,
                  place_text);
    write_stacks(options, comparison, output);
    write_values(options, comparison.breakdown(), output);
}

void write_text(const Options& options, const Programs& programs, Output& output) {
    output.section("Programs");
    const Comparison& first = *programs.all.front().comparison;
    ChangeTable table(first.header(), first.shown(), options.color);
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
