// Which functions are shown, and the tables of them: by file, and by name.
#pragma once

#include "tools/annotate/options.h"
#include "tools/annotate/table.h"
#include "tools/output/output.h"
#include "tools/profile/function_profile.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::annotate {

// An event by its index, and the percentage of its total that makes a function worth showing.
struct SortColumn {
    std::size_t event;
    std::optional<double> percent;
};

// The events to sort by; at least one has a percentage. Throws Error.
std::vector<SortColumn> sort_columns(const Options& options, const events::Header& header);

// Whether the first of two rows comes before the second: by their sizes, not their signs.
// No value if they are equal.
std::optional<bool> comes_first(Counts a, Counts b, const std::vector<SortColumn>& sort,
                                const events::Header& header);
bool is_above_threshold(Counts counts, Counts totals, const std::vector<SortColumn>& sort,
                        const events::Header& header);

// The files above the threshold, the most important first.
std::vector<std::uint32_t> files_to_show(const FunctionProfile& profile,
                                         const std::vector<SortColumn>& sort);
// Indices of functions in that order, all of them.
std::vector<std::size_t> functions_in_order(const FunctionProfile& profile,
                                            const std::vector<SortColumn>& sort);

// Files, each with its functions; and functions, each with its files, as those of inlined and
// template functions are.
void write_functions(const FunctionProfile& profile, const Columns& columns,
                     const std::vector<SortColumn>& sort, Output& output);

}  // namespace assay::annotate
