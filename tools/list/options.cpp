#include "framework/support/text.h"
#include "tools/command_line/command_line.h"
#include "tools/list/list.h"

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
    "Prints the instructions that matter most, as many as fit a screen, with the\n"
    "counts of each and the most frequent values that profilers have seen there. The\n"
    "profile needs --dump-instr=yes, or values. With --series, prints the series of\n"
    "the profile.\n\n"
    "  assay list [options] FILE [PROGRAM]\n";

void add_what_to_list(CommandLine& line, Arguments& arguments) {
    Options& options = arguments.plain;
    line.add_argument("FILE", options.profile);
    line.add_argument("PROGRAM", options.program, Need::kOptional);
    line.add_text(
        "--function", arguments.function, "REGEX",
        "list whole functions: all whose name contains a match, even those with few counts\n"
        "For a function that was inlined into others, list its instructions in each of them.");
    line.add_flag("--full", options.full,
                  "list whole functions, all above the threshold, and all events");
    line.add_flag("--series", options.series,
                  "print the series of the profile instead, such as reuse's miss curve, as tables");
    line.add_number(
        "--threshold", options.threshold, 0, 100, "P",
        "list instructions, or with --full functions, with at least P % of the first sort event; "
        "default: 0.1");
    line.add_list("--show", options.show, "A,B,...", "show only these events, in this order");
    line.add_list("--sort", options.sort, "A,B,...", "choose and sort by these events");
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
                    "show percentages of the totals; with --full, beside the counts; "
                    "default: yes");
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
