// `assay run`: one program under one driver, its profilers, and the events file. `assay replay`: the
// same of a trace file.
#pragma once

#include "framework/collector/launch/child.h"
#include "framework/collector/run/settings.h"

#include <span>
#include <string>
#include <vector>

namespace assay::collector {

// Profiles the program and writes the file. Returns how assay shall end: as the program did, or
// with status 125 if the profile is not what was asked for. Throws Error, before the program starts
// if that is possible.
Ending run(const CoreSettings& settings, const std::vector<std::string>& program);

// Profiles what a trace file has of a run, in place of the run.

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
