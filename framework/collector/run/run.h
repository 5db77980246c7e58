// `assay run` executes one program under one driver, calls its profilers, and writes the events
// file. `assay replay` does the same with a trace file.
#pragma once

#include "framework/collector/launch/child.h"
#include "framework/collector/run/settings.h"

#include <span>
#include <string>
#include <vector>

namespace assay::collector {

// Profiles the program and writes the file. Returns how assay must end: like the program, or with
// status 125 if the profile is not as requested. Throws Error, if possible before the program
// starts.
Ending run(const CoreSettings& settings, const std::vector<std::string>& program);

// Profiles a recorded run from a trace file.

// Writes an events file for each process image, the same as the run would have written. Returns the
// exit status of the command. Throws Error.
int replay(const CoreSettings& settings, const std::string& file);
// Replays programs, one of each file, that share a machine.
int replay(CoreSettings settings, std::span<const std::string> files);

// One of several replays of a file.
struct ReplayPoint {
    CoreSettings settings;
    int log = -1;  // descriptor for messages; -1: stderr
};
// Replays the file for each point, in its own process. One pass over the file serves all points
// whose profilers want the same of a driver. Returns the exit statuses. Throws Error if the file
// cannot be replayed at all.
std::vector<int> replay(std::span<const ReplayPoint> points, const std::string& file);

}  // namespace assay::collector
