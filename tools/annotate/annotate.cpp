#include "tools/annotate/annotate.h"

#include "framework/events/formula.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/annotate/calls.h"
#include "tools/annotate/functions.h"
#include "tools/annotate/groups.h"
#include "tools/annotate/inlined.h"
#include "tools/annotate/json.h"
#include "tools/annotate/sources.h"
#include "tools/profile/function_profile.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <memory>

namespace assay::annotate {

namespace {

std::string thresholds(const std::vector<SortColumn>& sort, const events::Header& header) {
    std::vector<std::string> parts;
    for (const SortColumn& column : sort)
        if (column.percent)
            parts.push_back(
                fmt::format("{}% of {}", *column.percent, header.events[column.event].name));
    return fmt::format("those with at least {}", join(parts, " or "));
}

// "Name:   value" with the values of all lines of the header in one column; further values of the
// same name below the first.
class Facts {
  public:
    void add(std::string_view name, std::string_view value) { facts_.emplace_back(name, value); }

    void write(Output& output) const {
        std::size_t width = 0;
        for (const auto& [name, value] : facts_) width = std::max(width, name.size() + 1);
        for (const auto& [name, value] : facts_)
            output.write(fmt::format("{}  {}\n",
                                     padded(name.empty() ? "" : printable(name) + ":", width),
                                     printable(value)));
        output.write("\n");
    }

  private:
    std::vector<std::pair<std::string, std::string>> facts_;
};

void write_header(const Options& options, const FunctionProfile& profile,
                  const std::vector<std::size_t>& shown, const std::vector<SortColumn>& sort,
                  Output& output) {
    const events::Header& header = profile.header();
    const std::vector<std::string> names = event_names(header);
    const auto add_list = [](Facts& facts, std::string_view name, const auto& values) {
        for (const auto& value : values) {
            facts.add(name, value);
            name = "";
        }
    };
    std::vector<std::string> shown_names, sort_names;
    for (const std::size_t column : shown) shown_names.push_back(shown_name(column, header));
    for (const SortColumn& column : sort) sort_names.push_back(names[column.event]);

    Facts facts;
    for (const auto& [name, text] : profile.descriptions()) facts.add(name, text);
    add_list(facts, "Command", profile.commands());
    if (options.difference) {
        facts.add("Old", options.profiles[0]);
        facts.add("New", options.profiles[1]);
    } else {
        add_list(facts, options.profiles.size() == 1 ? "File" : "Files", options.profiles);
    }
    facts.add("Events recorded", join(names, " "));
    facts.add("Events shown", join(shown_names, ", "));
    facts.add("Sorted by", join(sort_names, " "));
    facts.add("Functions", thresholds(sort, header));
    add_list(facts, "Include", options.where.include_dirs);
    add_list(facts, "Sources named", options.sources);
    facts.add("Sources", options.automatic ? "those of the functions shown" : "only those named");
    output.section("Profile");
    facts.write(output);
    for (const std::string& difference : profile.differences())
        output.write(fmt::format("Warning: counts are {} that were made differently: {}\n",
                                 options.difference ? "compared" : "added up",
                                 printable(difference)));
    if (!profile.differences().empty()) output.write("\n");
    for (const std::string& reason : profile.incomplete())
        output.write(
            fmt::format("INCOMPLETE, not the counts of a whole run: {}\n", printable(reason)));
    if (!profile.incomplete().empty()) output.write("\n");
}

void write_legend(const Columns& columns, Output& output) {
    std::size_t width = 0;
    std::vector<events::Event> described;
    for (const std::size_t column : columns.shown) {
        if (column >= columns.header.events.size()) continue;
        const events::Event& event = columns.header.events[column];
        if (event.description.empty()) continue;
        described.push_back(event);
        width = std::max(width, event.name.size());
    }
    if (described.empty()) return;
    output.section("Events");
    for (const events::Event& event : described)
        output.write(
            fmt::format("{}  {}\n", padded(event.name, width), printable(event.description)));
    output.write("\n");
}

void write_totals(const Columns& columns, Output& output) {
    Table table(columns);
    table.fit(columns.totals);
    output.section("Totals");
    output.write(table.heading(""));
    output.write(table.row(columns.totals, "PROGRAM TOTALS") + "\n");
    // Those of a difference would not be the differences of those of the profiles.
    if (columns.header.derived.empty() || columns.header.difference) return;
    std::size_t width = 0;
    for (const events::Derived& derived : columns.header.derived)
        width = std::max(width, derived.name.size());
    for (const events::Derived& derived : columns.header.derived) {
        const events::Formula formula(derived.formula, columns.header.events);
        output.write(fmt::format("{}  {}\n", padded(printable(derived.name), width),
                                 printable(derived_text(derived, formula, columns.totals))));
    }
    output.write("\n");
}

Details details_of(const SourceChoice& choice, const FunctionProfile& profile,
                   const Options& options) {
    Details details{std::vector<bool>(profile.files().size()), options.instructions};
    for (const SourceChoice::Source& source : choice.found) details.files[source.file] = true;
    return details;
}

// Wide tables of many events would not fit on a page with what is called from where.
std::vector<std::size_t> events_to_show(const Options& options, const std::vector<SortColumn>& sort,
                                        const events::Header& header) {
    if (options.by_context() && options.show.empty()) return {sort.front().event};
    return shown_events(options.show, header);
}

void check_unchanged(const Options& options, Counts totals, Counts read_again) {
    if (!std::equal(totals.begin(), totals.end(), read_again.begin(), read_again.end()))
        throw Error(
            fmt::format("{} was changed while it was being read", join(options.profiles, ", ")));
}

// Throws Error if there are none of that kind, or if a file has changed since the totals were read.
void read_groups(const Options& options, Counts totals, GroupProfile& profile) {
    FileGroups files(profile, options.files, {options.by}, options.lines || options.json);
    for (const std::string& path : options.files.paths) {
        if (FileGroups::is_kind(options.by))
            files.add_file(path);
        else
            profile.add_file(path);
    }
    if (FileGroups::is_kind(options.by)) files.check_any();
    profile.finish();
    check_unchanged(options, totals, profile.totals());
    const std::vector<std::string>& kinds = profile.kinds();
    if (std::find(kinds.begin(), kinds.end(), options.by) != kinds.end()) return;
    const std::string file = join(options.profiles, ", ");
    if (!kinds.empty())
        throw Error(fmt::format("--by={}: {} has counts by {} only", options.by, file,
                                join(kinds, " and ")));
    const bool of_types = options.by == "type" || options.by == "member";
    if (!of_types && options.by != "object" && options.by != "thread")
        throw Error(fmt::format(
            "--by={}: give object, type, member, thread, program, process or rank", options.by));
    const std::string kind = of_types ? "types" : options.by + "s";
    throw Error(fmt::format("{} was measured without {}: run with --{}", file, kind, kind));
}

// What is not of any group would only take room, and percentages where there are many columns.
void choose_counted(const Options& options, const GroupProfile& groups, Columns& columns,
                    std::vector<SortColumn>& sort) {
    const std::vector<std::size_t> counted = GroupTable::counted_events(groups, options.by);
    if (counted.empty()) return;
    constexpr std::size_t kMostWithPercentages = 3;
    if (options.show.empty()) columns.shown = counted;
    if (options.show.empty() && counted.size() > kMostWithPercentages) columns.percentages = false;
    if (options.sort.empty()) sort = {{counted.front(), options.threshold}};
}

// Throws Error if there are no contexts, or if a file has changed since the totals were read.
void read_contexts(const Options& options, Counts totals, WholeProfile& profile) {
    for (const std::string& path : options.files.paths) profile.add_file(path);
    profile.finish();
    check_unchanged(options, totals, profile.totals());
    if (profile.has_contexts() || (options.calls && !profile.calls().empty())) return;
    const std::string files = join(options.profiles, ", ");
    if (!profile.calls().empty())
        throw Error(
            fmt::format("--tree: {} has calls, as Callgrind records them, but no calling "
                        "contexts: use --calls",
                        files));
    throw Error(fmt::format("{} was measured without contexts: run with --contexts", files));
}

}  // namespace

void annotate(const Options& options, Output& output) {
    FunctionProfile profile(options.file_names, options.function_names);
    InlinedCalls inlined(options.file_names, options.function_names);
    profile.pass_on(inlined);
    for (const std::string& path : options.old_files.paths)
        profile.add_file(path, FunctionProfile::Sign::kSubtract);
    for (const std::string& path : options.files.paths) profile.add_file(path);
    if (options.difference && options.match) profile.match_functions();
    const events::Header& header = profile.header();
    std::vector<SortColumn> sort = sort_columns(options.sort, options.threshold, header);
    Columns columns = {header, profile.totals(), events_to_show(options, sort, header),
                       options.percentages, options.color};
    WholeProfile contexts;
    if (options.by_context()) read_contexts(options, profile.totals(), contexts);
    GroupProfile groups;
    if (!options.by.empty()) {
        read_groups(options, profile.totals(), groups);
        choose_counted(options, groups, columns, sort);
    }
    const auto group_table =
        options.by.empty()
            ? nullptr
            : std::make_unique<GroupTable>(groups, options.by, columns, sort, options.lines);
    const auto calls =
        options.calls ? std::make_unique<CallTable>(contexts, columns, sort) : nullptr;
    const auto tree = options.tree ? std::make_unique<TreeTable>(contexts, columns, sort) : nullptr;
    const SourceChoice choice = choose_sources(options, profile, files_to_show(profile, sort));
    if (!choice.found.empty()) profile.read_details(details_of(choice, profile, options));
    const Assembly assembly = options.instructions ? assembly_of(profile) : Assembly();

    if (options.json) {
        Sink sink("");
        write_json(options,
                   {profile, inlined, choice, assembly, calls.get(), tree.get(), group_table.get()},
                   columns, sort, sink);
        return sink.finish();
    }
    write_header(options, profile, columns.shown, sort, output);
    write_legend(columns, output);
    write_totals(columns, output);
    if (calls) calls->write(output);
    if (tree) tree->write(output);
    if (group_table) group_table->write(output);
    if (!options.without_sources()) {
        write_functions(profile, columns, sort, output);
        write_inlined(inlined, profile, columns, sort, output);
    }
    if (!options.without_sources() || !options.sources.empty())
        write_sources(options, profile, columns, choice, assembly, output);
    output.finish();
}

}  // namespace assay::annotate

namespace assay {

int annotate_main(int argc, char** argv) {
    const std::optional<annotate::Options> options = annotate::parse_options(argc, argv);
    if (!options) return 0;
    Output output(stdout, options->pager ? Output::Paging::kIfLong : Output::Paging::kNever);
    annotate::annotate(*options, output);
    return 0;
}

}  // namespace assay
