// The series of a profile, as the page plots them.
#pragma once

#include "tools/output/json_writer.h"
#include "tools/profile/whole_profile.h"

namespace assay::report {

// `old`: of a report on a difference, whose series stand beside those of the profile; else null.
void write_series(const WholeProfile& profile, const WholeProfile* old, JsonWriter& json);

}  // namespace assay::report
