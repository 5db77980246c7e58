// `assay run`: one program under one driver, its profilers, and the events file.
#pragma once

#include "framework/collector/launch/child.h"
#include "framework/collector/run/settings.h"

#include <string>
#include <vector>

namespace assay::collector {

// Profiles the program and writes the file. Returns how assay shall end: as the program did, or
// with status 125 if the profile is not what was asked for. Throws Error, before the program starts
// if that is possible.
Ending run(const CoreSettings& settings, const std::vector<std::string>& program);

}  // namespace assay::collector
