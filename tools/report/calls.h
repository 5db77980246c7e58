// What each function counts with all that it calls, its callers and its callees, for the page.
#pragma once

#include "tools/output/json_writer.h"
#include "tools/profile/whole_profile.h"

namespace assay::report {

// Functions and calls with at least `least_share` of an event's total; null if the profile has no
// contexts.
void write_calls(const WholeProfile& profile, double least_share, JsonWriter& json);

}  // namespace assay::report
