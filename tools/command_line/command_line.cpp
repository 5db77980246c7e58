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
    line.add_choice("--pager", pager, "auto|no",
                    "send what is longer than the terminal through $PAGER or less; default: auto");
}

void add_source_search(CommandLine& line, SourceOptions& where) {
    line.add_list("-I,--include", where.include_dirs, "DIR",
                  "look for sources in this folder, too, by the ends of their paths; may be "
                  "repeated");
    line.add_list("--source-extensions", where.extensions, "EXT,...",
                  "files of these extensions are sources, too, wherever they are\n"
                  "Of files that a profile names, only those are shown that have the extension of "
                  "a source, or are below the working directory or an --include folder, or are "
                  "named by debug information of the profile's programs.");
    line.add("--map", "OLD=NEW",
             "sources that were compiled in folder OLD are in NEW now\n"
             "May be repeated: the first that has a source counts.",
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
