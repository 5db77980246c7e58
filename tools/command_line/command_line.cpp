#include "tools/command_line/command_line.h"

#include "framework/support/error.h"
#include "framework/version.h"
#include "tools/output/output.h"
#include "tools/sources/source_finder.h"

#include <fmt/core.h>
#include <utility>

namespace assay {

void add_color(CommandLine& line, std::string& color, const char* help) {
    line.add_choice("--color", color, "auto|always|never", help);
}

void add_pager(CommandLine& line, std::string& pager) {
    line.add_choice(
        "--pager", pager, "auto|no",
        "show output that is longer than the terminal in $PAGER or less; default: auto");
}

void add_names(CommandLine& line, std::string& names) {
    line.add_choice(
        "--names", names, "short|full",
        "show names of functions and types in short or in full; default: short\n"
        "Short names leave out parameters, default arguments of templates, inline namespaces and "
        "ABI tags. Functions that would get the same name keep what tells them apart.");
}

void add_own(CommandLine& line, OwnOptions& own) {
    line.add_flag("--only-own", own.only,
                  "count library code for the lines of own code that called it\n"
                  "Needs a profile with --contexts. Without it, this holds for inlined code only.");
    line.add_list(
        "--own", own.paths, "PATH",
        "with --only-own, which it implies: own code is that of the source or binary "
        "PATH, or below; may be repeated\n"
        "Default: all code outside of the system's headers and libraries, and of CPython.");
}

void add_source_search(CommandLine& line, SourceOptions& where) {
    line.add_list("-I,--include", where.include_dirs, "DIR",
                  "also look for sources in this folder, by the ends of their paths; may be "
                  "repeated");
    line.add_list("--source-extensions", where.extensions, "EXT,...",
                  "also treat files with these extensions as sources, in any folder\n"
                  "A file that a profile names is shown only if it has the extension of a source, "
                  "is below the working directory or an --include folder, or is named by debug "
                  "information of the profile's programs.");
    line.add("--map", "OLD=NEW",
             "look in NEW for sources that were compiled in folder OLD\n"
             "May be repeated. The first folder with the source is used.",
             [&where](const Setting& setting) {
                 for (MovedFolder& moved : parse_moved("--map", {setting.value}))
                     where.moved.push_back(std::move(moved));
             });
}

void add_help(CommandLine& line) {
    line.add("-h,--help", "", "show the options", {});
    line.add("--version", "", "show the version", {});
}

bool parse(CommandLine& line, int argc, const char* const* argv, Order order) {
    std::string answer;
    try {
        const std::vector<Setting> settings =
            line.parse(std::vector<std::string>(argv + 1, argv + argc), order);
        for (const Setting& setting : settings) {
            if (setting.name == "help") answer = line.help();
            if (setting.name == "version" && answer.empty()) answer = version_line();
        }
        if (answer.empty()) {
            line.take(settings);
            line.check();
        }
    } catch (const Error& error) {
        throw Error(fmt::format("{}: {}; see {} --help", line.name(), error.what(), line.name()));
    }
    if (!answer.empty()) print_text(answer);
    return answer.empty();
}

std::string version_line() {
    return std::string("assay ") + kVersion + "\n";
}

bool wants_color(std::string_view color) {
    return color == "always" || (color == "auto" && terminal_has_color());
}

}  // namespace assay
