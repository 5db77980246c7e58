// assay diff: what changed from one profile to another, by function.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/expressions/replacement.h"
#include "tools/output/output.h"
#include "tools/table/sort.h"

#include <optional>
#include <string>
#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int diff_main(int argc, char** argv);

namespace diff {

struct Options {
    std::string old_path, new_path;
    std::string out;  // an events file of the differences; empty: a table for people
    std::vector<Replacement> file_names, function_names;
    std::vector<std::string> show;  // empty: all events
    std::vector<SortEvent> sort;    // empty: all, in the order of the file
    double threshold = 0.1;
    bool match = true;  // functions whose names have changed, too
    bool json = false;
    bool color = false;
    bool pager = false;
};

std::vector<OptionDescription> options();
// No value if --help was asked for and has been printed. Throws Error.
std::optional<Options> parse_options(int argc, const char* const* argv);

void diff(const Options& options, Output& output);

}  // namespace diff
}  // namespace assay
