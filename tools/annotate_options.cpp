#include "tools/annotate_options.h"

#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/annotate_output.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace assay::annotate {

namespace {

// A larger share than this hides functions that matter; it is more likely meant as the share of
// all functions together, as the option was understood by Cachegrind before 3.1.
constexpr double kLargestThreshold = 20;

double parse_threshold(std::string_view option, std::string_view text) {
    std::string_view digits = text;
    if (digits.ends_with('%')) digits.remove_suffix(1);
    double value = -1;
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc() || rest != end || !(value >= 0 && value <= kLargestThreshold))
        throw Error(
            fmt::format("{} {}: give the smallest percentage that a function must have, 0 to {}",
                        option, text, kLargestThreshold));
    return value;
}

std::vector<SortEvent> parse_sort(const std::vector<std::string>& words) {
    std::vector<SortEvent> events;
    for (const std::string& word : words) {
        const std::size_t colon = word.find(':');
        SortEvent event{word.substr(0, colon), std::nullopt};
        if (colon != std::string::npos)
            event.threshold = parse_threshold("--sort " + event.name, word.substr(colon + 1));
        events.push_back(std::move(event));
    }
    return events;
}

// What is written on the command line, before it is understood.
struct Arguments {
    std::vector<std::string> files, show, sort, include_dirs;
    std::string threshold, percentages = "yes", automatic = "yes", color = "auto";
    unsigned context = 8;
};

void add_options(CLI::App& app, Arguments& arguments) {
    app.set_help_flag("-h,--help", "show this");
    const CLI::IsMember yes_no({"yes", "no"});
    app.add_option("FILE", arguments.files,
                   "events files, whose counts are added up; source files to annotate")
        ->required();
    app.add_option("--show", arguments.show, "show only these events, in this order")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("A,B,...");
    app.add_option("--sort", arguments.sort,
                   "sort by these events; with :P, show functions with at least P % of it")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("A[:P],B,...");
    app.add_option("--threshold", arguments.threshold,
                   "show functions with at least P % of the first sort event [0.1]")
        ->type_name("P");
    app.add_option("--show-percs", arguments.percentages, "show percentages of the totals [yes]")
        ->check(yes_no)
        ->type_name("yes|no");
    app.add_option("--auto", arguments.automatic,
                   "annotate the sources of the functions shown [yes]")
        ->check(yes_no)
        ->type_name("yes|no");
    app.add_option("--context", arguments.context, "lines of source around each counted one [8]")
        ->check(CLI::Range(0U, 1'000'000U))
        ->type_name("N");
    app.add_option("-I,--include", arguments.include_dirs, "look for sources in this folder, too")
        ->allow_extra_args(false)
        ->type_name("DIR");
    app.add_option("--color", arguments.color, "highlight what counts most [auto: on a terminal]")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->type_name("auto|always|never");
}

constexpr const char* kPurpose =
    "Prints totals, functions and annotated sources of events files, which are added up.\n\n"
    "  assay annotate [options] FILE... [SOURCE...]\n";

// What the first argument is must be an events file. cg_annotate takes all others for sources.
void sort_files(const std::vector<std::string>& files, Options& options) {
    for (const std::string& file : files) {
        const bool is_profile = options.profiles.empty() || events::begins_as_events_file(file);
        (is_profile ? options.profiles : options.sources).push_back(file);
    }
}

}  // namespace

std::vector<OptionDescription> options() {
    Arguments arguments;
    CLI::App app(kPurpose, "assay annotate");
    add_options(app, arguments);
    return describe_options(app);
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    Arguments arguments;
    CLI::App app(kPurpose, "assay annotate");
    add_options(app, arguments);
    if (!parse_arguments(app, argc, argv)) return std::nullopt;
    Options options;
    options.show = arguments.show;
    options.context = arguments.context;
    options.include_dirs = arguments.include_dirs;
    if (!arguments.threshold.empty())
        options.threshold = parse_threshold("--threshold", arguments.threshold);
    options.sort = parse_sort(arguments.sort);
    options.percentages = arguments.percentages == "yes";
    options.automatic = arguments.automatic == "yes";
    options.color =
        arguments.color == "always" || (arguments.color == "auto" && terminal_has_color());
    sort_files(arguments.files, options);
    return options;
}

}  // namespace assay::annotate
