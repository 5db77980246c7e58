// The values of a profile's instructions, and its series, for the page.
#pragma once

#include "tools/output/json_writer.h"
#include "tools/profile/profile.h"

namespace assay::report {

// The lists that have seen the most. What is an address in one of the profile's files has its name
// there.
void write_values(const Profile& profile, JsonWriter& json);

// The series of a profile, as the page plots them.

// `old`: of a report on a difference, whose series stand beside those of the profile; else null.
void write_series(const Profile& profile, const Profile* old, JsonWriter& json);

}  // namespace assay::report
