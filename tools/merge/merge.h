// assay merge: the sum of events files as an events file.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/profile/profile.h"

#include <string>
#include <vector>

namespace assay {

// Writes all that the profile, which is finished, has; see writer.h. Throws Error.
void write_events_file(const Profile& profile, const std::string& path);

// The subcommand. argv[0] is its name. Throws Error.
int merge_main(int argc, char** argv);

std::vector<Option> merge_options();

}  // namespace assay
