// assay diff: compares two profiles by function, and checks limits.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/diff/limits.h"
#include "tools/expressions/expressions.h"
#include "tools/output/output.h"
#include "tools/profile/display_names.h"
#include "tools/sources/source_finder.h"
#include "tools/table/table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Returns the exit status, which is 1 if a limit is exceeded.
// Throws Error with exit status 2.
int diff_main(int argc, char** argv);

namespace diff {

enum class Format : std::uint8_t { kText, kJson, kMarkdown, kHtml, kEventsFile };

struct Options {
    std::string old_path, new_path;  // events files, or folders of events files
    std::string out;                 // empty: standard output
    Format format = Format::kText;
    std::vector<Replacement> file_names, function_names, commands;
    std::vector<std::string> show;  // empty: all events; of a text, those that matter unless `full`
    std::vector<SortEvent> sort;    // empty: all, in the order of the file
    double threshold = 0.1;
    bool full = false;  // show all rows and events
    bool match = true;  // match functions whose names have changed
    std::string by;     // the kind of groups to compare; empty: functions
    std::vector<Limit> limits;
    NameStyle names = NameStyle::kShort;     // JSON has the full names
    SourceOptions old_sources, new_sources;  // where to look for sources of a page
    bool color = false;
    bool pager = false;
};

std::vector<Option> options();
// No value if --help was given and the help has been printed. Throws Error.
std::optional<Options> parse_options(int argc, const char* const* argv);

// Returns false if a limit is exceeded, and names such limits on stderr.
bool diff(const Options& options, Output& output);

}  // namespace diff
}  // namespace assay
