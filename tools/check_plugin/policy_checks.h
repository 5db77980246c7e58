// Checks libraries with policies and prefetchers of simulated caches (assay/cache_policy.h).
#pragma once

#include "tools/check_plugin/subject.h"

#include <string>

namespace assay::check {

// True if the file seems to export a policy or a prefetcher. Does not load it.
bool is_policy_library(const std::string& path);

// Calls its functions with random references. Crashes are not caught, so use it in a separate
// process only.
void check_policies(const std::string& path, Report& report);

}  // namespace assay::check
