#include "tools/list/list.h"

#include "framework/support/error.h"
#include "framework/support/plain_names.h"
#include "framework/support/text.h"
#include "framework/symbols/interval_map.h"
#include "tools/code/object_code.h"
#include "tools/command_line/command_line.h"
#include "tools/list/function.h"
#include "tools/list/values.h"
#include "tools/profile/profile.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace assay::list {

namespace {

// The options as texts, before they are parsed.
struct Arguments {
    Options plain;  // options that need no parsing
    std::string function, syntax = "att", source = "no", percentages = "yes", color = "auto",
                          pager = "auto", names = "short";
};

constexpr const char* kPurpose =
    "Prints the instructions of functions with the counts of each, and the most\n"
    "frequent values that profilers have seen there. The profile must have been made\n"
    "with --dump-instr=yes. With --series, prints the series of the profile.\n\n"
    "  assay list [options] FILE [PROGRAM]\n";

void add_what_to_list(CommandLine& line, Arguments& arguments) {
    Options& options = arguments.plain;
    line.add_argument("FILE", options.profile);
    line.add_argument("PROGRAM", options.program, Need::kOptional);
    line.add_text(
        "--function", arguments.function, "REGEX",
        "list all functions whose name contains a match, even those with few counts\n"
        "For a function that was inlined into others, list its instructions in each of them.");
    line.add_flag("--series", options.series,
                  "print the series of the profile instead, such as reuse's miss curve, as tables");
    line.add_number(
        "--threshold", options.threshold, 0, 100, "P",
        "otherwise, list functions with at least P % of the first sort event; default: 1");
    line.add_list("--show", options.show, "A,B,...", "show only these events, in this order");
    line.add_list("--sort", options.sort, "A,B,...", "sort functions by these events");
    line.add_number("--values", options.values, 0, 1024, "N",
                    "show at most N values of an instruction; default: 8");
    line.add_list(
        "--plugin", options.plugins, "NAME,...",
        "use these profilers, by name or path, to print their values; others are found by "
        "their names");
}

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay list", kPurpose,
                  "Exit status: 0, or 125 if something could not be read or written.\n");
    add_what_to_list(line, arguments);
    line.add_choice("--source", arguments.source, "yes|no",
                    "put the source lines between the instructions; default: no");
    add_source_search(line, arguments.plain.where);
    line.add_choice("--syntax", arguments.syntax, "att|intel",
                    "print instructions in this syntax; default: att");
    line.add_choice("--show-percs", arguments.percentages, "yes|no",
                    "show percentages of the totals; default: yes");
    add_names(line, arguments.names);
    add_color(line, arguments.color,
              "highlight the highest counts; default: on a terminal, unless NO_COLOR is set");
    add_pager(line, arguments.pager);
}

}  // namespace

std::vector<Option> options() {
    return options_of(add_options);
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    std::optional<Arguments> parsed = parse_arguments(add_options, argc, argv);
    if (!parsed) return std::nullopt;
    const Arguments& arguments = *parsed;
    Options options = std::move(parsed->plain);
    if (!arguments.function.empty()) options.function = Pattern("--function", arguments.function);
    options.syntax = arguments.syntax == "intel" ? Syntax::kIntel : Syntax::kAtt;
    options.names = name_style(arguments.names);
    options.source = arguments.source == "yes";
    options.percentages = arguments.percentages == "yes";
    options.color = wants_color(arguments.color);
    options.pager = arguments.pager == "auto";
    return options;
}

}  // namespace assay::list

namespace assay::list {
namespace {

using Rows = std::span<const Row>;

bool contains(const Pattern& pattern, std::string_view function) {
    return any_spelling(function, [&](std::string_view name) { return pattern.is_in(name); });
}

// Finds the functions of one object, from its symbols if the code is there, and from the profile.
class FunctionFinder {
  public:
    FunctionFinder(const Profile& profile, Rows rows, ObjectCode& code,
                   const std::optional<Pattern>& wanted)
        : profile_(profile), wanted_(wanted) {
        std::vector<std::uint64_t> addresses(rows.size());
        std::transform(rows.begin(), rows.end(), addresses.begin(),
                       [](const Row& row) { return row.address; });
        ranges_ = code.functions(addresses);
        for (std::uint32_t i = 0; i < ranges_.size(); ++i)
            range_at_.add(ranges_[i].low, ranges_[i].high, i);
        range_at_.seal();
        for (const Row& row : rows) add(row);
    }

    std::vector<Function> take() { return std::move(functions_); }

  private:
    // If the user asks for a function by name, its inlined code is shown for each function that
    // contains it. A function that is wanted itself is shown as a whole.
    bool is_wanted_inlined(const Row& row, const symbols::FunctionRange& range) {
        return wanted_ && row.function != range.name && is_wanted(row.function) &&
               !is_wanted(range.name);
    }

    // The keys point into the profile or the object's symbols, which live longer.
    bool is_wanted(std::string_view name) {
        const auto [known, is_new] = is_wanted_.try_emplace(name, false);
        if (is_new) known->second = contains(*wanted_, name);
        return known->second;
    }

    void add(const Row& row) {
        const std::uint32_t index = range_at_.find(row.address);
        const symbols::FunctionRange* const range =
            index == symbols::IntervalMap::kNone ? nullptr : &ranges_[index];
        const bool inlined = range && is_wanted_inlined(row, *range);
        const auto key = range && !inlined
                             ? std::pair(range->low, std::string_view())
                             : std::pair(range ? range->low : std::uint64_t{0}, row.function);
        const auto [known, is_new] = index_.try_emplace(key, functions_.size());
        if (is_new) {
            Function function{std::string(range && !inlined ? range->name : row.function),
                              std::string(inlined ? range->name : ""), row.object};
            if (range && !inlined) {
                function.low = range->low;
                function.high = range->high;
            }
            function.counts.resize(profile_.totals().size());
            functions_.push_back(std::move(function));
        }
        Function& function = functions_[known->second];
        function.rows.push_back(&row);
        add_counts(function.counts, row.counts(profile_));
    }

    const Profile& profile_;
    const std::optional<Pattern>& wanted_;
    std::map<std::string_view, bool> is_wanted_;
    std::vector<symbols::FunctionRange> ranges_;
    symbols::IntervalMap range_at_;  // indices in ranges_
    std::map<std::pair<std::uint64_t, std::string_view>, std::size_t> index_;
    std::vector<Function> functions_;
};

std::vector<Function> find_functions(const Profile& profile, Rows rows, const Options& options,
                                     const std::vector<std::unique_ptr<ObjectCode>>& code) {
    std::vector<Function> functions;
    for (auto begin = rows.begin(); begin != rows.end();) {
        const auto end = std::find_if(begin, rows.end(),
                                      [&](const Row& row) { return row.object != begin->object; });
        auto found =
            FunctionFinder(profile, {begin, end}, *code[begin->object], options.function).take();
        std::move(found.begin(), found.end(), std::back_inserter(functions));
        begin = end;
    }
    return functions;
}

// False if the profile has only values.
bool have_counts(const std::vector<Function>& functions) {
    return std::any_of(functions.begin(), functions.end(),
                       [](const Function& function) { return any_count(function.counts); });
}

// Selects and sorts the functions to list. Without counts, no function is above a threshold.
void choose(std::vector<Function>& functions, const Options& options, const Profile& profile) {
    std::vector<std::size_t> sort(options.sort.size());
    std::transform(options.sort.begin(), options.sort.end(), sort.begin(),
                   [&](const auto& name) { return event_index("--sort", name, profile.header()); });
    for (std::size_t i = 0; options.sort.empty() && i < profile.totals().size(); ++i)
        sort.push_back(i);
    const auto total = static_cast<double>(profile.totals()[sort.front()]);
    const double threshold = have_counts(functions) ? options.threshold : 0;
    std::erase_if(functions, [&](const Function& function) {
        if (options.function)
            return function.outer.empty() && !contains(*options.function, function.name);
        return static_cast<double>(function.counts[sort.front()]) * 100 < threshold * total;
    });
    std::stable_sort(functions.begin(), functions.end(), [&](const Function& a, const Function& b) {
        for (const std::size_t event : sort)
            if (a.counts[event] != b.counts[event]) return a.counts[event] > b.counts[event];
        return std::tie(a.name, a.outer) < std::tie(b.name, b.outer);
    });
}

void write_head(const Options& options, const Profile& profile, const ValuePrinter& values,
                bool counted, Output& output) {
    output.section("Instructions");
    output.write(fmt::format("Command:  {}\nFile:     {}\n", printable(profile.header().command),
                             printable(options.profile)));
    for (const std::string& note : values.notes())
        output.write(fmt::format("Note:     {}\n", printable(note)));
    if (const std::size_t series = profile.header().series.size(); series != 0)
        output.write(fmt::format("Note:     {} series: --series lists them\n", series));
    if (!counted)
        output.write("Note:     no counts of instructions: profile with --dump-instr=yes\n");
    if (!profile.header().incomplete.empty())
        output.write(fmt::format("INCOMPLETE, not the counts of a whole run: {}\n",
                                 printable(profile.header().incomplete)));
    output.write("\n");
}

void write_summary(const std::vector<Function>& functions, const Columns& columns,
                   const DisplayNames& names, Output& output) {
    Table table(columns);
    table.fit(columns.totals);
    output.write(table.heading("function"));
    output.write(table.row(columns.totals, "PROGRAM TOTALS"));
    for (const Function& function : functions)
        output.write(table.row(function.counts, printable(text_of(function, names))));
    output.write("\n");
}

// The names of all lists, without repetitions.
std::vector<std::string_view> lists_of(const Profile& profile) {
    std::set<std::string_view> names;
    for (const Profile::Values& values : profile.values()) names.insert(values.list.name);
    return {names.begin(), names.end()};
}

}  // namespace

void list(const Options& options, Output& output) {
    Profile profile(parts::kInstructions | parts::kValues);
    profile.add_file(options.profile);
    profile.finish();
    const Instructions instructions(profile);
    const Columns columns{
        profile.header(), profile.totals(), shown_events(options.show, profile.header()),
        options.percentages ? Cells::kCountsAndShares : Cells::kCounts, options.color};
    const auto code = open_objects(profile.objects(), options.program);
    std::vector<Function> functions = find_functions(profile, instructions.rows(), options, code);
    choose(functions, options, profile);
    if (functions.empty())
        throw Error(options.function
                        ? "--function: no function of the profile has such a name"
                        : "no function reaches the threshold: give a lower one with --threshold");

    ValuePrinter values(lists_of(profile), options.plugins, options.values);
    write_head(options, profile, values, have_counts(functions), output);
    DisplayNames names(options.names);
    names.add(profile);
    for (const Function& function : functions) {
        names.add(function.name);
        names.add(function.outer);
    }
    names.finish();
    write_summary(functions, columns, names, output);
    FunctionWriter writer(options, profile, columns, names, values, code, output);
    std::vector<bool> said(code.size());
    for (const Function& function : functions) {
        ObjectCode& object = *code[function.object];
        writer.write(function, object);
        if (object.problem().empty() || said[function.object]) continue;
        output.write(
            fmt::format("Warning: no instructions are shown: {}\n\n", printable(object.problem())));
        said[function.object] = true;
    }
    output.finish();
}

}  // namespace assay::list

namespace assay {

int list_main(int argc, char** argv) {
    const std::optional<list::Options> options = list::parse_options(argc, argv);
    if (!options) return 0;
    Output output(stdout, options->pager ? Output::Paging::kIfLong : Output::Paging::kNever);
    if (options->series)
        list::list_series(options->profile, options->names, output);
    else
        list::list(*options, output);
    return 0;
}

}  // namespace assay
