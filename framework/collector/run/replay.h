// Profiles what a trace file has of a run, in place of the run.
#pragma once

#include "framework/collector/run/settings.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::collector {

// Whether an option of assay itself is one of a replay; the others are of the run.
bool is_of_replay(std::string_view option);
// take_core_settings(), and --weights. Throws Error also on one that is of the run.
CoreSettings take_replay_settings(const std::vector<Setting>& command_line);

// Of each process image an events file, as the run itself would have left it. Returns the exit
// status of the command. Throws Error.
int replay(const CoreSettings& settings, const std::string& file);

// One of several replays of a file.
struct ReplayPoint {
    CoreSettings settings;
    int log = -1;  // a descriptor for what it says; -1: stderr
};
// All of them, in one pass over the file where the profilers want what one driver can give, and in
// a process each. Returns their exit statuses. Throws Error if the file cannot be replayed at all.
std::vector<int> replay(std::span<const ReplayPoint> points, const std::string& file);

}  // namespace assay::collector
