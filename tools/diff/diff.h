// assay diff: what changed from one profile to another, by function, and whether that is too much.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/diff/limits.h"
#include "tools/expressions/expressions.h"
#include "tools/output/output.h"
#include "tools/sources/source_finder.h"
#include "tools/table/table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Returns the exit status: 1 if a limit is exceeded. Throws
// Error, whose exit status is 2.
int diff_main(int argc, char** argv);

namespace diff {

enum class Format : std::uint8_t { kText, kJson, kMarkdown, kHtml, kEventsFile };

struct Options {
    std::string old_path, new_path;  // files, or folders of them
    std::string out;                 // empty: standard output
    Format format = Format::kText;
    std::vector<Replacement> file_names, function_names, commands;
    std::vector<std::string> show;  // empty: all events
    std::vector<SortEvent> sort;    // empty: all, in the order of the file
    double threshold = 0.1;
    bool match = true;  // functions whose names have changed, too
    std::string by;     // a kind of groups; empty: by function
    std::vector<Limit> limits;
    SourceOptions old_sources, new_sources;  // of a page
    bool color = false;
    bool pager = false;
};

std::vector<Option> options();
// No value if --help was asked for and has been printed. Throws Error.
std::optional<Options> parse_options(int argc, const char* const* argv);

// Whether no limit is exceeded; those that are, stderr names.
bool diff(const Options& options, Output& output);

}  // namespace diff
}  // namespace assay
