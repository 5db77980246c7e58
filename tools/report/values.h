// The values of a profile's instructions, for the page.
#pragma once

#include "tools/output/json_writer.h"
#include "tools/profile/whole_profile.h"

namespace assay::report {

// The lists that have seen the most. What is an address in one of the profile's files has its name
// there.
void write_values(const WholeProfile& profile, JsonWriter& json);

}  // namespace assay::report
