#include "tools/annotate/annotate.h"

#include "framework/events/formula.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/annotate/calls.h"
#include "tools/annotate/function_list.h"
#include "tools/annotate/functions.h"
#include "tools/annotate/groups.h"
#include "tools/annotate/inclusive.h"
#include "tools/annotate/json.h"
#include "tools/annotate/sources.h"
#include "tools/profile/own_view.h"
#include "tools/profile/profile.h"
#include "tools/table/brief.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

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

// Writes lines of the form "Name:   value" with aligned values. Further values of a name follow on
// lines without the name.
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

void write_header(const Options& options, const Profile& profile,
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

    Facts facts;
    for (const auto& [name, text] : profile.heads().descriptions())
        if (options.full || name == events::kSampled || name == events::kSamplingError)
            facts.add(name, text);
    add_list(facts, "Command", profile.commands());
    if (options.difference) {
        facts.add("Old", options.profiles[0]);
        facts.add("New", options.profiles[1]);
    } else {
        add_list(facts, options.profiles.size() == 1 ? "File" : "Files", options.profiles);
    }
    if (options.full) {
        std::vector<std::string> shown_names, sort_names;
        for (const std::size_t column : shown) shown_names.push_back(shown_name(column, header));
        for (const SortColumn& column : sort) sort_names.push_back(names[column.event]);
        facts.add("Events recorded", join(names, " "));
        facts.add("Events shown", join(shown_names, ", "));
        facts.add("Sorted by", join(sort_names, " "));
        facts.add("Functions", thresholds(sort, header));
        add_list(facts, "Include", options.where.include_dirs);
        add_list(facts, "Sources named", options.sources);
        facts.add("Sources",
                  options.automatic ? "those of the functions shown" : "only those named");
        output.section("Profile");
    }
    facts.write(output);
    for (const std::string& difference : profile.heads().differences())
        output.write(fmt::format("Warning: counts are {} that were made differently: {}\n",
                                 options.difference ? "compared" : "added up",
                                 printable(difference)));
    if (!profile.heads().differences().empty()) output.write("\n");
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
    for (const events::Event& event : described) {
        std::string text = printable(event.description);
        if (!event.formula.empty()) text += " = " + printable(event.formula);
        output.write(fmt::format("{}  {}\n", padded(event.name, width), text));
    }
    output.write("\n");
}

void write_totals(const Columns& columns, Output& output) {
    Table table(columns);
    table.fit(columns.totals);
    output.section("Totals");
    output.write(table.heading(""));
    output.write(table.row(columns.totals, "PROGRAM TOTALS") + "\n");
    // Derived figures of a difference are not differences of the profiles' derived figures.
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

Details details_of(const SourceChoice& choice, const Profile& profile, const Options& options) {
    Details details{std::vector<bool>(profile.by_source().files().size()), options.instructions};
    for (const SourceChoice::Source& source : choice.found) details.files[source.file] = true;
    return details;
}

// Without --sort, tables begin with the event that decides their order.
std::vector<SortEvent> sort_events(const Options& options, const events::Header& header) {
    if (!options.sort.empty() || options.show.empty()) return options.sort;
    std::vector<SortEvent> sort;
    for (const std::size_t column : shown_events(options.show, header))
        if (column < header.events.size()) sort.push_back({header.events[column].name, {}});
    return sort;
}

// Tables of calls show one event by default, because lines with many columns get too wide.
std::vector<std::size_t> events_to_show(const Options& options, const std::vector<SortColumn>& sort,
                                        const Profile& profile) {
    if (options.by_context() && options.show.empty()) return {sort.front().event};
    const bool all = !options.show.empty() || !options.by.empty() || options.full || options.wide ||
                     options.json;
    return all ? shown_events(options.show, profile.header())
               : important_events(sort.front().event, profile.header(), profile.totals());
}

// JSON has all rows.
Extent extent_of(const Options& options, const Columns& columns) {
    constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
    if (options.full || options.json) return {kAll, kAll, true};
    return options.top == 0 ? fitting(columns) : Extent{options.top, kAll};
}

// Throws Error if the profile has no groups of the kind.
void check_groups(const Options& options, const Groups& groups) {
    const std::vector<std::string>& kinds = groups.kinds();
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

// Removes events that no group counts. Also removes percentages from tables with many columns.
void choose_counted(const Options& options, const Groups& groups, Columns& columns,
                    std::vector<SortColumn>& sort) {
    const std::vector<std::size_t> counted =
        GroupTable::counted_events(groups, options.by, columns.totals.size());
    if (counted.empty()) return;
    constexpr std::size_t kMostWithPercentages = 3;
    if (options.show.empty()) columns.shown = counted;
    if (options.show.empty() && counted.size() > kMostWithPercentages)
        columns.cells = Cells::kCounts;
    if (options.sort.empty()) sort = {{counted.front(), options.threshold}};
}

// Throws Error if the profile has no calling contexts.
void check_contexts(const Options& options, const Profile& profile) {
    if (profile.has_contexts() || (options.calls && !profile.calls().empty())) return;
    const std::string files = join(options.profiles, ", ");
    if (!profile.calls().empty())
        throw Error(
            fmt::format("--tree: {} has calls, as Callgrind records them, but no calling "
                        "contexts: use --calls",
                        files));
    throw Error(fmt::format("{} was measured without contexts: run with --contexts", files));
}

unsigned parts_for(const Options& options) {
    unsigned kept = parts::kFunctions;
    if (options.by_context()) kept |= parts::kLines | parts::kInstructions | parts::kContexts;
    if (!options.by.empty()) kept |= parts::kContexts | parts::kGroups;
    return kept;
}

void read(const Options& options, Profile& profile) {
    if (!options.without_sources()) profile.accept_differences();
    for (const std::string& path : options.old_files.paths) profile.add_file(path, Side::kOld);
    const bool by_file = FileGroups::is_kind(options.by);
    FileGroups files(profile, options.files,
                     by_file ? std::vector{options.by} : std::vector<std::string>(),
                     options.lines || options.json);
    files.add_files();
    if (by_file) files.check_any();
    if (options.difference && options.match) profile.match_functions();
    profile.finish();
}

// Prints the options' files, whose library code may belong to own code already.
void annotate_files(const Options& options, Output& output) {
    Profile profile(parts_for(options), options.file_names, options.function_names);
    const bool brief = !options.full && !options.json;
    InlinedCalls inlined(options.file_names, options.function_names);
    InclusiveCounts inclusive(
        options.sort.empty() ? options.show : std::vector{options.sort.front().name},
        options.file_names, options.function_names);
    if (brief)
        profile.pass_on(inclusive);
    else
        profile.pass_on(inlined);
    read(options, profile);
    const events::Header& header = profile.header();
    std::vector<SortColumn> sort =
        sort_columns(sort_events(options, header), options.threshold, header);
    Columns columns = {header,        profile.totals(), events_to_show(options, sort, profile),
                       options.cells, options.color,    options.width};
    DisplayNames names(options.names);
    names.add(profile);
    inlined.add_names(names);
    names.finish();
    std::unique_ptr<CallTable> calls;
    std::unique_ptr<TreeTable> tree;
    std::unique_ptr<GroupTable> groups;
    if (options.by_context()) check_contexts(options, profile);
    if (!options.by.empty()) {
        check_groups(options, profile.groups());
        choose_counted(options, profile.groups(), columns, sort);
    }
    const Extent extent = extent_of(options, columns);
    if (!options.by.empty())
        groups = std::make_unique<GroupTable>(profile.groups(), options.by, columns, sort, names,
                                              options.lines, extent);
    if (options.calls) calls = std::make_unique<CallTable>(profile, columns, sort, names, extent);
    if (options.tree) tree = std::make_unique<TreeTable>(profile, columns, sort, names, extent);
    inclusive.finish();
    const InclusiveColumn inclusive_column(inclusive, columns, sort.front().event);
    if (columns.width != 0 && inclusive_column.width() != 0)
        columns.width -= std::min(columns.width, inclusive_column.width() + 2);
    const FunctionList list(profile, sort, extent);
    const SourceChoice choice = choose_sources(
        options, profile,
        brief ? list.files(OwnCode(options.own.paths)) : files_to_show(profile, sort));
    if (!choice.found.empty()) profile.read_details(details_of(choice, profile, options));
    const Assembly assembly = options.instructions ? assembly_of(profile, choice) : Assembly();

    if (options.json) {
        Sink sink("");
        write_json(options,
                   {profile, inlined, choice, assembly, calls.get(), tree.get(), groups.get()},
                   columns, sort, sink);
        return sink.finish();
    }
    write_header(options, profile, columns.shown, sort, output);
    if (brief) {
        write_brief_totals(columns, output);
    } else {
        write_legend(columns, output);
        write_totals(columns, output);
    }
    if (calls) calls->write(output);
    if (tree) tree->write(output);
    if (groups) groups->write(output);
    if (!options.without_sources() && brief) {
        list.write(columns, inclusive_column, names, output);
    } else if (!options.without_sources()) {
        write_functions(profile, columns, sort, names, output);
        write_inlined(inlined, profile, columns, sort, names, output);
    }
    if (!options.without_sources() || !options.sources.empty())
        write_sources(options, profile, columns, choice, assembly,
                      brief ? &inclusive_column : nullptr, sort.front().event, output);
    output.finish();
}

void annotate_own(const Options& options, Output& output) {
    const OwnCode own(options.own.paths);
    const OwnView view(options.files.paths, own);
    std::optional<OwnView> old_view;
    Options of_view = options;
    of_view.files.paths = {view.path()};
    if (options.difference) {
        old_view.emplace(options.old_files.paths, own);
        of_view.old_files.paths = {old_view->path()};
    }
    annotate_files(of_view, output);
}

}  // namespace

void annotate(const Options& options, Output& output) {
    if (options.own.wanted())
        annotate_own(options, output);
    else
        annotate_files(options, output);
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
