#include "tools/list/options.h"

#include "tools/command_line/command_line.h"

#include <utility>

namespace assay::list {
namespace {

// What is written on the command line, before it is understood.
struct Arguments {
    Options plain;  // those that need no understanding
    std::string function, syntax = "att", source = "no", percentages = "yes", color = "auto",
                          pager = "auto";
};

constexpr const char* kPurpose =
    "Prints the instructions of functions with the counts of each, and the most\n"
    "frequent values that profilers have seen there. The profile must have been made\n"
    "with --dump-instr=yes. With --series, the series that profilers have written.\n\n"
    "  assay list [options] FILE [PROGRAM]\n";

void add_what_to_list(CommandLine& line, Arguments& arguments) {
    Options& options = arguments.plain;
    line.add_argument("FILE", options.profile);
    line.add_argument("PROGRAM", options.program, Need::kOptional);
    line.add_text("--function", arguments.function, "REGEX",
                  "list the functions whose name contains a match, whatever they count\n"
                  "Of a function that was inlined into others, the instructions that count there.");
    line.add_flag("--series", options.series,
                  "print the series of the profile instead, such as reuse's miss curve, as tables");
    line.add_number("--threshold", options.threshold, 0, 100, "P",
                    "otherwise those with at least P % of the first sort event; default: 1");
    line.add_list("--show", options.show, "A,B,...", "show only these events, in this order");
    line.add_list("--sort", options.sort, "A,B,...", "sort functions by these events");
    line.add_number("--values", options.values, 0, 1024, "N",
                    "show at most N values of an instruction; default: 8");
    line.add_list(
        "--plugin", options.plugins, "NAME,...",
        "the profilers that print their values, by name or by path; others are found by their "
        "names");
}

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay list", kPurpose,
                  "Exit status: 0, or 125 if something could not be read or written.\n");
    add_what_to_list(line, arguments);
    line.add_choice("--source", arguments.source, "yes|no",
                    "put the source lines between the instructions; default: no");
    add_source_search(line, arguments.plain.where);
    line.add_choice("--syntax", arguments.syntax, "att|intel",
                    "the syntax of the instructions; default: att");
    line.add_choice("--show-percs", arguments.percentages, "yes|no",
                    "show percentages of the totals; default: yes");
    add_color(line, arguments.color,
              "highlight what counts most; default: on a terminal, unless NO_COLOR is set");
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
    options.source = arguments.source == "yes";
    options.percentages = arguments.percentages == "yes";
    options.color = wants_color(arguments.color);
    options.pager = arguments.pager == "auto";
    return options;
}

}  // namespace assay::list
