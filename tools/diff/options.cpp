// The command line of assay diff.
#include "framework/support/error.h"
#include "tools/diff/diff.h"

#include <fmt/core.h>

namespace assay::diff {

namespace {

struct Arguments {
    std::vector<std::string> files, show, sort, file_names, function_names;
    std::string out, threshold, match = "alike", color = "auto", pager = "auto";
    bool json = false;
};

constexpr const char* kPurpose =
    "Prints what changed from one events file to another, by function: counts of NEW\n"
    "less those of OLD. Lines are not compared, because any change of a source moves\n"
    "them.\n\n"
    "  assay diff [options] OLD NEW\n";

constexpr const char* kExamples =
    "Examples:\n\n"
    "  assay diff before.out after.out\n"
    "  assay diff --mod-filename='s/v[0-9]+/vN/' v1/out v2/out  two folders as one\n"
    "  assay diff --mod-funcname='s/\\.[0-9]+$//' a.out b.out    no compilers' numbers\n"
    "  assay diff -o changes.out before.out after.out           for assay annotate\n\n"
    "assay annotate --diff OLD NEW compares line by line, for unchanged sources.\n\n"
    "Exit status: 0, whether anything changed or not; 125 if something could not be\n"
    "read, understood or written.\n";

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay diff", kPurpose, kExamples);
    line.add_arguments("FILE", arguments.files, "two events files, or indices of runs");
    line.add_text(
        "-o,--out", arguments.out, "FILE",
        "write the differences, those of calling contexts too, to an events file; print nothing");
    line.add_list("--mod-filename", arguments.file_names, "s/A/B/",
                  "change the names of files by a Perl search-and-replace expression first; may be "
                  "repeated");
    line.add_list("--mod-funcname", arguments.function_names, "s/A/B/",
                  "the same for the names of functions");
    line.add_choice("--match", arguments.match, "alike|exact",
                    "which functions are the same: all that compilers and moves make of one, or those "
                    "of one file and name, as for cg_diff; default: alike");
    line.add_list("--show", arguments.show, "A,B,...", "show only these events, in this order");
    line.add_list("--sort", arguments.sort, "A,B,...",
                  "sort by the changes of these events; A:P shows changes of at least P % of A");
    line.add_text(
        "--threshold", arguments.threshold, "P",
        "show functions whose first sort event changed by at least P % of OLD's total, 0 to "
        "20; default: 0.1");
    line.add_flag("--json", arguments.json, "write JSON, by diff-schema.json of the documentation");
    line.add_color(arguments.color,
                   "red for more, green for less; default: on a terminal, unless NO_COLOR is set");
    line.add_pager(arguments.pager);
}

}  // namespace

std::vector<OptionDescription> options() {
    return options_of(add_options);
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    const std::optional<Arguments> parsed = parse_arguments(add_options, argc, argv);
    if (!parsed) return std::nullopt;
    const Arguments& arguments = *parsed;
    if (arguments.files.size() != 2)
        throw Error(fmt::format("diff compares two events files, not {}: assay diff OLD NEW",
                                arguments.files.size()));
    Options options;
    options.old_path = arguments.files[0];
    options.new_path = arguments.files[1];
    options.out = arguments.out;
    options.file_names = parse_replacements("--mod-filename", arguments.file_names);
    options.function_names = parse_replacements("--mod-funcname", arguments.function_names);
    options.match = arguments.match == "alike";
    options.show = arguments.show;
    options.sort = parse_sort(arguments.sort);
    if (!arguments.threshold.empty())
        options.threshold = parse_threshold("--threshold", arguments.threshold);
    options.json = arguments.json;
    options.pager = arguments.pager == "auto" && !options.json;
    options.color = wants_color(arguments.color);
    return options;
}

}  // namespace assay::diff
