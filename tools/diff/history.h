// assay history: the counts of a series of versions, and the versions in which functions grew.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/diff/diff.h"

#include <cstdint>
#include <map>
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

// The count of a program in a version, and what has changed since the version before.
struct VersionCounts {
    std::string name;
    std::uint64_t count;
    std::string change;                  // "" for none
    std::vector<std::string> functions;  // those that changed most, with their changes
};
struct ProgramHistory {
    std::string event;
    std::vector<VersionCounts> versions;
    // From 0 for the lowest count to 1 for the highest one.
    double height(const VersionCounts& version) const;
};
using Histories = std::map<std::string, ProgramHistory>;  // by command
// `options` has the event to show, or none for the first one, and the threshold.
Histories histories_of(const Options& options, const std::vector<std::string>& versions);

void write_history(const Histories& histories, Output& output);
void write_history_page(const Histories& histories, Sink& sink);

}  // namespace diff
}  // namespace assay
