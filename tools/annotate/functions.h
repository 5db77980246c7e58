// Which functions are shown, and the tables of them: by file, and by name.
#pragma once

#include "tools/output/output.h"
#include "tools/profile/profile.h"
#include "tools/table/table.h"

#include <cstdint>
#include <vector>

namespace assay::annotate {

// The files above the threshold, the most important first.
std::vector<std::uint32_t> files_to_show(const Profile& profile,
                                         const std::vector<SortColumn>& sort);
// Indices of functions in that order, all of them.
std::vector<std::size_t> functions_in_order(const Profile& profile,
                                            const std::vector<SortColumn>& sort);

// Files, each with its functions; and functions, each with its files, as those of inlined and
// template functions are.
void write_functions(const Profile& profile, const Columns& columns,
                     const std::vector<SortColumn>& sort, Output& output);

}  // namespace assay::annotate
