// A whole profile as an events file.
#pragma once

#include "tools/profile/group_profile.h"
#include "tools/profile/whole_profile.h"

#include <string>

namespace assay {

// Writes all that the profile, which is finished, has, and its groups; see writer.h. Throws Error.
void write_events_file(const WholeProfile& profile, const GroupProfile& groups,
                       const std::string& path);

}  // namespace assay
