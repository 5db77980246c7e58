#include "tools/annotate/annotate.h"

#include "framework/events/file.h"
#include "framework/events/index.h"
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/command_line/command_line.h"
#include "tools/profile/profile_files.h"

#include <fmt/core.h>
#include <filesystem>
#include <string_view>
#include <utility>

namespace assay::annotate {

namespace {

constexpr unsigned kMostContext = 1'000'000;
constexpr unsigned kUsualContext = kMostContext + 1;

// Options as given, before their texts are parsed.
struct Arguments {
    Options plain;  // options that need no parsing
    std::vector<std::string> files, sort, file_names, function_names;
    unsigned context = kUsualContext;
    std::string threshold, percentages, annotate = "yes", automatic = "yes", color = "auto",
                                        pager = "auto", match = "alike", names = "short";
};

constexpr const char* kPurpose =
    "Prints totals, functions and annotated sources of events files of assay,\n"
    "Cachegrind or Callgrind. Counts of several files are added up. SOURCEs are\n"
    "annotated even if they are below the threshold.\n\n"
    "  assay annotate [options] [FILE... [SOURCE...]]\n"
    "  assay annotate --diff [options] OLD NEW [SOURCE...]\n";

constexpr const char* kExamples =
    "Examples:\n\n"
    "  assay annotate                                  the newest profile here\n"
    "  assay annotate assay.out.1234                   what is executed most\n"
    "  assay annotate --sort=D1mr --show=D1mr,Ir FILE  where the cache is missed most\n"
    "  assay annotate --show=Dr,D1mr,'D1 miss rate' FILE\n"
    "  assay annotate --asm --threshold=5 FILE         instructions below their lines\n"
    "  assay annotate --calls --sort=D1mr FILE         who calls what misses most\n"
    "  assay annotate --by=object --sort=D1mr FILE     which data are missed most\n"
    "  assay annotate --by=program index.assay.out.1   a run of several processes\n"
    "  assay annotate --diff --mod-filename='s/v[0-9]+/vN/' v1.out v2.out\n\n"
    "Exit status: 0, or 125 if something could not be read, understood or written.\n";

void add_choice_options(CommandLine& line, Arguments& arguments) {
    line.add_list("--show", arguments.plain.show, "A,B,...",
                  "show only these events and derived figures, in this order");
    line.add_list("--sort", arguments.sort, "A,B,...",
                  "sort by these events; A:P shows functions with at least P % of A");
    line.add_text("--threshold", arguments.threshold, "P",
                  "show files and functions with at least P % of the first sort event, 0 to 20; "
                  "default: 0.1");
    line.add_switch("--show-percs,--no-show-percs", arguments.percentages,
                    "show percentages of the totals; with --full, beside the counts; "
                    "default: yes");
    line.add_flag("--full", arguments.plain.full,
                  "show all events, and all functions and lines above the threshold, as "
                  "cg_annotate does");
    line.add_flag("--wide", arguments.plain.wide, "show all events");
    line.add_number(
        "--top", arguments.plain.top, std::size_t{1}, std::size_t{1'000'000}, "N",
        "show N functions with their sources, or N rows of another table; default: as many as "
        "fit a screen");
    line.add_flag("--diff", arguments.plain.difference, "show the counts of NEW less those of OLD");
    line.add_choice(
        "--match", arguments.match, "alike|exact",
        "with --diff: choose how to match functions, as assay diff does; default: alike");
    line.add_list(
        "--mod-filename", arguments.file_names, "s/A/B/",
        "change the names of files by a Perl search-and-replace expression; may be repeated");
    line.add_list("--mod-funcname", arguments.function_names, "s/A/B/",
                  "change the names of functions in the same way");
}

void add_context_options(CommandLine& line, Arguments& arguments) {
    line.add_flag(
        "--calls", arguments.plain.calls,
        "show functions with their callers and callees, instead of sources\n"
        "Shows their own counts, and the counts including all functions that they call. "
        "Needs a profile with calling contexts. Without --show, shows only the first sort "
        "event.");
    line.add_flag(
        "--tree", arguments.plain.tree,
        "show the tree of calling contexts, instead of sources\n"
        "Shows the counts of each context with all calls from it, and its own counts. "
        "Needs a profile with calling contexts. Without --show, shows only the first sort "
        "event.");
    line.add_text(
        "--by", arguments.plain.by, "KIND",
        "show counts by object, type, member, thread, program, process or rank, instead of "
        "sources\n"
        "The first four need a profile that was made with --objects, --types or --threads. Ranks "
        "are those of processes under mpirun. Without --sort, sorts by the first event that has "
        "such counts.");
    line.add_flag("--lines", arguments.plain.lines,
                  "with --by: show the source lines of the counts below each row");
}

// --calls, --tree and --by cannot combine two profiles or rename functions.
void check_context_options(const Options& options) {
    if (options.lines && options.by.empty()) throw Error("--lines is for --by=KIND: give both");
    if (options.own.wanted() && (options.instructions || !options.by.empty()))
        throw Error(fmt::format("--only-own shows functions, lines and calls: leave out {}",
                                options.instructions ? "--asm" : "--by=" + options.by));
    if (!options.without_sources()) return;
    const std::string name = !options.by.empty() ? "--by=" + options.by
                             : options.calls     ? "--calls"
                                                 : "--tree";
    if (options.difference)
        throw Error(
            fmt::format("{} shows one profile, not a difference: leave out --diff, or use "
                        "assay diff, which compares calling contexts",
                        name));
    if (!options.file_names.empty() || !options.function_names.empty())
        throw Error(fmt::format("{} shows names as they are: leave out {}", name,
                                options.file_names.empty() ? "--mod-funcname" : "--mod-filename"));
}

void add_source_options(CommandLine& line, Arguments& arguments) {
    line.add_switch("--annotate,--no-annotate", arguments.annotate,
                    "annotate the sources of the files shown; default: yes");
    line.add_text("--auto", arguments.automatic, "yes|no",
                  "the same as --annotate, spelled as in older releases of cg_annotate");
    line.add_flag(
        "--asm", arguments.plain.instructions,
        "show instructions below their lines; needs a profile made with --dump-instr=yes");
    line.add_number("--context", arguments.context, 0U, kMostContext, "N",
                    "show N lines of source around each line that matters; default: 2, and 8 "
                    "with --full");
    add_source_search(line, arguments.plain.where);
}

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay annotate", kPurpose, kExamples);
    line.add_arguments("FILE", arguments.files, Need::kOptional);
    add_choice_options(line, arguments);
    add_context_options(line, arguments);
    add_source_options(line, arguments);
    line.add_flag("--json", arguments.plain.json,
                  "write JSON, by annotate-schema.json of the documentation");
    add_own(line, arguments.plain.own);
    add_names(line, arguments.names);
    add_color(line, arguments.color,
              "highlight the highest counts; default: on a terminal, unless NO_COLOR is set");
    add_pager(line, arguments.pager);
}

// The first argument must be an events file; with --diff, also the second. cg_annotate takes all
// other arguments for sources.
void sort_files(const std::vector<std::string>& files, Options& options) {
    const std::size_t needed = options.difference ? 2 : 1;
    std::error_code error;
    for (const std::string& file : files) {
        // A pipe cannot be a source, and reading its beginning would lose data.
        const bool is_other = !events::can_be_read_again(file) &&
                              (file == "-" || std::filesystem::exists(file, error));
        const bool is_profile = options.profiles.size() < needed || is_other ||
                                events::begins_as_events_file(file) ||
                                events::begins_as_index(file);
        (is_profile ? options.profiles : options.sources).push_back(file);
    }
    if (options.difference && options.profiles.size() != 2)
        throw Error(
            fmt::format("--diff compares two events files, not {}: assay annotate --diff "
                        "OLD NEW",
                        options.profiles.size()));
    if (options.difference) options.old_files = profile_files({options.profiles[0]});
    options.files =
        profile_files(options.difference ? std::vector{options.profiles[1]} : options.profiles);
}

bool parse_yes_no(std::string_view option, std::string_view text) {
    if (text != "yes" && text != "no")
        throw Error(fmt::format("{}={}: give yes or no", option, text));
    return text == "yes";
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
    options.match = arguments.match == "alike";
    options.names = name_style(arguments.names);
    options.file_names = parse_replacements("--mod-filename", arguments.file_names);
    options.function_names = parse_replacements("--mod-funcname", arguments.function_names);
    options.sort = parse_sort(arguments.sort);
    if (!arguments.threshold.empty())
        options.threshold = parse_threshold("--threshold", arguments.threshold);
    const bool brief = !options.full && !options.without_sources();
    // Shares of a difference tell little.
    const bool percentages = arguments.percentages.empty()
                                 ? !brief || !options.difference
                                 : parse_yes_no("--show-percs", arguments.percentages);
    options.cells = !percentages ? Cells::kCounts
                    : brief      ? Cells::kShares
                                 : Cells::kCountsAndShares;
    options.context = arguments.context != kUsualContext ? arguments.context : options.full ? 8 : 2;
    if (brief && !options.wide) options.width = width_of_page();
    options.automatic = parse_yes_no("--auto", arguments.automatic) &&
                        parse_yes_no("--annotate", arguments.annotate);
    if (options.without_sources()) options.automatic = false;
    options.pager = arguments.pager == "auto" && !options.json;
    options.color = wants_color(arguments.color);
    const bool any = !arguments.files.empty() || options.difference;
    sort_files(any ? arguments.files : std::vector{newest_profile()}, options);
    check_context_options(options);
    return options;
}

}  // namespace assay::annotate
