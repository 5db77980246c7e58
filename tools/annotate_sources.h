// Source files with the counts of each line before it.
#pragma once

#include "tools/annotate_options.h"
#include "tools/annotate_output.h"
#include "tools/annotate_profile.h"
#include "tools/annotate_table.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::annotate {

// Where a source is now: as it was named when it was compiled, or below one of the folders.
// There, the name may have lost leading folders, because sources move as whole trees.
std::optional<std::filesystem::path> find_source(const std::filesystem::path& name,
                                                 const std::vector<std::string>& include_dirs);

// Annotates the sources that the user named, then the files of the functions shown, given as
// indices of files. Throws Error if one that the user named has no counts or cannot be read.
void write_sources(const Options& options, const Profile& profile, const Columns& columns,
                   const std::vector<std::uint32_t>& files_of_functions, Output& output);

}  // namespace assay::annotate
