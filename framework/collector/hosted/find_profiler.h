// Profilers by the name of their file, and by the name that they give themselves.
#pragma once

#include "framework/collector/profilers/crash_guard.h"

#include <string>

namespace assay::collector {

// The path of the profiler called `name`: of the file NAME.so, or else of that whose vp_name says
// so, for which those that do not come with assay are loaded. A name with a slash is a path
// already. Throws Error.
std::string find_profiler(const std::string& name, CrashGuard& guard);

}  // namespace assay::collector
