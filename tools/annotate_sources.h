// Source files with the counts of each line before it.
#pragma once

#include "tools/annotate_options.h"
#include "tools/annotate_output.h"
#include "tools/annotate_profile.h"
#include "tools/annotate_table.h"

#include <cstdint>
#include <vector>

namespace assay::annotate {

// Annotates the sources that the user named, then the files of the functions shown, given as
// indices of files. Throws Error if one that the user named has no counts or cannot be read.
void write_sources(const Options& options, const Profile& profile, const Columns& columns,
                   const std::vector<std::uint32_t>& files_of_functions, Output& output);

}  // namespace assay::annotate
