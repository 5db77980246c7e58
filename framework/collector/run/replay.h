// Profiles what a trace file has of a run, in place of the run.
#pragma once

#include "framework/collector/run/settings.h"

#include <string>

namespace assay::collector {

// Of each process image an events file, as the run itself would have left it. Returns the exit
// status of the command. Throws Error.
int replay(const CoreSettings& settings, const std::string& file);

}  // namespace assay::collector
