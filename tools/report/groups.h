// Whose the counts are: groups, with the lines of source that their counts are of, for the page.
#pragma once

#include "tools/output/json_writer.h"
#include "tools/profile/group_profile.h"

namespace assay::report {

// Those with the largest shares of any event; null if `profile` is.
void write_groups(const GroupProfile* profile, JsonWriter& json);

}  // namespace assay::report
