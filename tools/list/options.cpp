#include "tools/list/options.h"

#include "framework/support/error.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <utility>

namespace assay::list {

namespace {

// What is written on the command line, before it is understood.
struct Arguments {
    Options plain;  // those that need no understanding
    std::string function, syntax = "att", source = "no", percentages = "yes", color = "auto";
};

void add_what_to_list(CLI::App& app, Arguments& arguments) {
    Options& options = arguments.plain;
    app.add_option("FILE", options.profile, "an events file")->required();
    app.add_option("PROGRAM", options.program,
                   "where a program or library of the profile is now, if it was moved");
    app.add_option("--function", arguments.function,
                   "list the functions whose name contains a match, instead of the busiest ones")
        ->type_name("REGEX");
    app.add_option("--threshold", options.threshold,
                   "list functions with at least P % of the first sort event [1]")
        ->check(CLI::Range(0.0, 100.0))
        ->type_name("P");
    add_list(app, "--show", options.show, "A,B,...", "show only these events, in this order")
        ->delimiter(',');
    add_list(app, "--sort", options.sort, "A,B,...", "sort functions by these events")
        ->delimiter(',');
    app.add_option("--values", options.values, "show at most N values of an instruction [8]")
        ->check(CLI::Range(0U, 1024U))
        ->type_name("N");
    add_list(app, "--plugin", options.plugins, "NAME,...",
             "profilers that print their values, by path; others are found by their names")
        ->delimiter(',');
}

void add_options(CLI::App& app, Arguments& arguments) {
    app.set_help_flag("-h,--help", "show this");
    const CLI::IsMember yes_no({"yes", "no"});
    add_what_to_list(app, arguments);
    app.add_option("--source", arguments.source,
                   "put the source lines between the instructions [no]")
        ->check(yes_no)
        ->type_name("yes|no");
    add_list(app, "-I,--include", arguments.plain.include_dirs, "DIR",
             "look for sources in this folder, too");
    app.add_option("--syntax", arguments.syntax, "of the instructions [att]")
        ->check(CLI::IsMember({"att", "intel"}))
        ->type_name("att|intel");
    app.add_option("--show-percs", arguments.percentages, "show percentages of the totals [yes]")
        ->check(yes_no)
        ->type_name("yes|no");
    add_color(app, arguments.color, "highlight what counts most [auto: on a terminal]");
}

constexpr const char* kPurpose =
    "Prints the instructions of functions with the counts of each, and the most frequent values\n"
    "that profilers have seen there. The profile must have been made with --dump-instr=yes.\n\n"
    "  assay list [options] FILE [PROGRAM]\n";

}  // namespace

std::vector<OptionDescription> options() {
    Arguments arguments;
    CLI::App app(kPurpose, "assay list");
    add_options(app, arguments);
    return describe_options(app);
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    Arguments arguments;
    CLI::App app(kPurpose, "assay list");
    add_options(app, arguments);
    if (!parse_arguments(app, argc, argv)) return std::nullopt;
    Options options = std::move(arguments.plain);
    try {
        if (!arguments.function.empty()) options.function = std::regex(arguments.function);
    } catch (const std::regex_error& error) {
        throw Error(fmt::format("--function {}: no regular expression: {}", arguments.function,
                                error.what()));
    }
    options.syntax = arguments.syntax == "intel" ? Syntax::kIntel : Syntax::kAtt;
    options.source = arguments.source == "yes";
    options.percentages = arguments.percentages == "yes";
    options.color = wants_color(arguments.color);
    return options;
}

}  // namespace assay::list
