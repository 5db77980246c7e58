// What is said at the end of a run: the profilers' summaries of the one program that was run, or an
// overview of several; and the index that names their profiles.
#pragma once

#include "framework/collector/run/output_files.h"
#include "framework/collector/run/profile_log.h"
#include "framework/collector/run/settings.h"

#include <span>
#include <string>

namespace assay::collector {

// The processes as a tree, with what they count of the first event, and the totals by program. In
// lines that begin with the process id of the first.
std::string overview(std::span<const ProfileLog::Entry> entries, bool all);

// Prints to stderr, and writes the index if there are several profiles. `image`: the first of the
// run. False if the index cannot be written, which has been said.
bool tell_of_profiles(std::span<const ProfileLog::Entry> entries, const CoreSettings& settings,
                      const Image& image);

}  // namespace assay::collector
