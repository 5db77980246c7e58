// assay history: the counts of a series of versions, and the versions in which functions grew.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/diff/diff.h"

#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Returns the exit status. Throws Error.
int history_main(int argc, char** argv);

namespace diff {

std::vector<Option> history_options();

// True if `a` comes before `b`: numbers in names are compared by their values.
bool is_earlier(std::string_view a, std::string_view b);
// Paths of the versions in a folder, the earliest first. Throws Error if there are fewer than two.
std::vector<std::string> versions_in(const std::string& folder);
// `options` has the event to show, or none for the first one, and the threshold.
void write_history(const Options& options, const std::vector<std::string>& versions,
                   Output& output);

}  // namespace diff
}  // namespace assay
