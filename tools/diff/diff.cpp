#include "tools/diff/diff.h"

#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/diff/comparison.h"
#include "tools/diff/writers.h"

#include <fmt/core.h>

namespace assay::diff {
namespace {

void write(const Options& options, Programs& programs, Output& output) {
    const Comparison& first = *programs.all.front().comparison;
    switch (options.format) {
        case Format::kEventsFile:
            if (programs.are_many)
                throw Error("-o FILE takes the differences of two files, not of folders");
            return write_events_file(options, first);
        case Format::kText:
            if (programs.are_many)
                write_text(options, programs, output);
            else
                write_text(options, first, output);
            return output.finish();
        case Format::kJson:
        case Format::kMarkdown:
        case Format::kHtml:
            break;
    }
    Sink sink(options.out);
    if (options.format == Format::kHtml)
        write_html(options, programs, sink);
    else if (options.format == Format::kMarkdown)
        write_markdown(options, programs, sink);
    else if (programs.are_many)
        write_json(options, programs, sink);
    else
        write_json(options, first, sink);
    sink.finish();
}

void name_exceeded(const Programs& programs) {
    for (const Programs::Program& program : programs.all)
        for (const Verdict& verdict : program.comparison->verdicts())
            if (verdict.is_exceeded)
                log::problem(programs.are_many
                                 ? fmt::format("{}: {}", program.command, verdict_text(verdict))
                                 : verdict_text(verdict));
}

}  // namespace

bool diff(const Options& options, Output& output) {
    Programs programs = compare_programs(options);
    write(options, programs, output);
    name_exceeded(programs);
    return !programs.are_exceeded();
}

namespace {

struct Arguments {
    Options plain;  // options that need no parsing
    std::vector<std::string> files, sort, file_names, function_names, commands, limits, old_moved;
    std::string threshold, format, match = "alike", color = "auto", pager = "auto", names = "short";
    bool json = false;
};

constexpr const char* kPurpose =
    "Prints what changed from one events file to another, by function: counts of NEW\n"
    "less those of OLD. Lines are not compared, because any change of a source moves\n"
    "them. For two folders, compares the profiles of each command that is in both.\n\n"
    "  assay diff [options] OLD NEW\n";

constexpr const char* kExamples =
    "Examples:\n\n"
    "  assay diff before.out after.out\n"
    "  assay diff --mod-filename='s/v[0-9]+/vN/' v1/out v2/out  two folders as one\n"
    "  assay diff --mod-funcname='s/_v[0-9]+$//' a.out b.out    versions in names\n"
    "  assay diff --show=Ir old.out new.out                     other events differ\n"
    "  assay diff -o changes.out before.out after.out           for assay annotate\n\n"
    "  assay diff --fail-on=Ir:+0.5% --fail-on='D1mr@parse*:+1000' a.out b.out\n"
    "  assay diff --fail-on=Ir:+0.5% --format=markdown base/ head/ > comment.md\n\n"
    "assay annotate --diff OLD NEW compares line by line, for unchanged sources.\n\n"
    "Exit status: 0, whether anything changed or not; 1 if a limit of --fail-on is\n"
    "exceeded; 2 if something could not be read, understood or written.\n";

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay diff", kPurpose, kExamples);
    line.add_arguments("FILE", arguments.files);
    line.add_list(
        "--fail-on", arguments.limits, "EVENT[@[KIND=]GLOB]:LIMIT",
        "exit with status 1 and a message if NEW exceeds a limit; may be repeated\n"
        "LIMIT is +NUMBER, or +NUMBER% of the count of OLD. A negative limit requires a "
        "decrease. EVENT can be a derived figure. Without GLOB, the limit applies to the "
        "program. With GLOB, it applies to each function whose name matches, or to each KIND: "
        "function, file, binary (of profiles with --dump-instr=yes), object, type, member or "
        "thread.");
    line.add_choice(
        "--format", arguments.format, "text|json|markdown|html",
        "write text for a terminal, JSON by diff-schema.json of the documentation, Markdown "
        "for a comment on a pull request, or a page of HTML with the sources of both sides; "
        "default: text");
    line.add_text("-o,--out", arguments.plain.out, "FILE",
                  "write to a file instead of standard output\n"
                  "Without --format, the file is an events file with the differences, including "
                  "those of calling contexts.");
    line.add_text("--by", arguments.plain.by, "KIND",
                  "compare counts by object, type, member or thread instead of by function");
    line.add_list("--mod-filename", arguments.file_names, "s/A/B/",
                  "change the names of files by a Perl search-and-replace expression first; may be "
                  "repeated");
    line.add_list("--mod-funcname", arguments.function_names, "s/A/B/",
                  "change the names of functions in the same way");
    line.add_list("--mod-command", arguments.commands, "s/A/B/",
                  "change commands in the same way before the profiles of two folders are matched");
    line.add_choice(
        "--match", arguments.match, "alike|exact",
        "choose how to match functions; default: alike\n"
        "alike also matches functions that compilers renamed or that moved to another file. "
        "exact requires the same file and name, as cg_diff does.");
    line.add_list("--show", arguments.plain.show, "A,B,...",
                  "show only these events, in this order");
    line.add_list("--sort", arguments.sort, "A,B,...",
                  "sort by the changes of these events; A:P shows changes of at least P % of A");
    line.add_text(
        "--threshold", arguments.threshold, "P",
        "show functions whose first sort event changed by at least P % of OLD's total, 0 to "
        "20; default: 0.1");
    line.add_flag(
        "--full", arguments.plain.full,
        "show all events, and all changes above the threshold; default: those that matter "
        "most, on a screen");
    line.add_flag("--json", arguments.json, "the same as --format=json");
    add_source_search(line, arguments.plain.new_sources);
    line.add_list("--old-map", arguments.old_moved, "OLD=NEW",
                  "look in NEW for sources of the OLD profile that were compiled in folder OLD");
    add_names(line, arguments.names);
    add_color(line, arguments.color,
              "show increases in red and decreases in green; default: on a terminal, unless "
              "NO_COLOR is set");
    add_pager(line, arguments.pager);
}

Format format_of(const Arguments& arguments) {
    if (arguments.json && !arguments.format.empty() && arguments.format != "json")
        throw Error(fmt::format("--json and --format={}: give one of them", arguments.format));
    if (arguments.json || arguments.format == "json") return Format::kJson;
    if (arguments.format == "markdown") return Format::kMarkdown;
    if (arguments.format == "html") return Format::kHtml;
    if (arguments.plain.out.empty()) return Format::kText;
    if (!arguments.format.empty())
        throw Error("--format=text is for terminals: leave out -o, or choose another format");
    if (!arguments.plain.by.empty())
        throw Error(
            "-o writes functions: leave out --by, or choose a format, such as --format=json");
    return Format::kEventsFile;
}

}  // namespace

std::vector<Option> options() {
    return options_of(add_options);
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    const std::optional<Arguments> parsed = parse_arguments(add_options, argc, argv);
    if (!parsed) return std::nullopt;
    const Arguments& arguments = *parsed;
    if (arguments.files.size() != 2)
        throw Error(fmt::format(
            "diff compares two events files, or two folders, not {}: assay diff OLD NEW",
            arguments.files.size()));
    Options options = arguments.plain;
    options.old_path = arguments.files[0];
    options.new_path = arguments.files[1];
    options.file_names = parse_replacements("--mod-filename", arguments.file_names);
    options.function_names = parse_replacements("--mod-funcname", arguments.function_names);
    options.match = arguments.match == "alike";
    options.names = name_style(arguments.names);
    options.sort = parse_sort(arguments.sort);
    if (!arguments.threshold.empty())
        options.threshold = parse_threshold("--threshold", arguments.threshold);
    options.commands = parse_replacements("--mod-command", arguments.commands);
    options.limits = parse_limits(arguments.limits);
    options.format = format_of(arguments);
    options.old_sources = options.new_sources;
    if (!arguments.old_moved.empty())
        options.old_sources.moved = parse_moved("--old-map", arguments.old_moved);
    options.pager = arguments.pager == "auto" && options.format == Format::kText;
    options.color = wants_color(arguments.color);
    return options;
}

}  // namespace assay::diff

namespace assay {

int diff_main(int argc, char** argv) {
    // The exit statuses of diff(1) and cmp(1).
    constexpr int kExceeded = 1, kTrouble = 2;
    try {
        const std::optional<diff::Options> options = diff::parse_options(argc, argv);
        if (!options) return 0;
        Output output(stdout, options->pager ? Output::Paging::kIfLong : Output::Paging::kNever);
        return diff::diff(*options, output) ? 0 : kExceeded;
    } catch (const Error& error) {
        throw Error(error.what(), kTrouble);
    }
}

}  // namespace assay
