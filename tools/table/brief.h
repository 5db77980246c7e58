// Views that fit a screen: the events that they show, and how many rows.
#pragma once

#include "framework/events/header.h"
#include "tools/output/output.h"
#include "tools/table/table.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace assay {

// The event `first`, and those that matter: the instructions, and the events that cause a few
// percent of the estimated cycles. Without an estimate, the first ones that occurred.
std::vector<std::size_t> important_events(std::size_t first, const events::Header& header,
                                          Counts totals);

// How much a table shows: the first `rows` rows, as far as they have no more than `lines` lines
// together, and at least one row.
struct Extent {
    std::size_t rows, lines;
    bool full = false;  // also shows titles of tables, as --full does
};
// As many rows as fit a page below the name of the profile and its totals.
Extent fitting(const Columns& columns);
// Tells that more rows are above the threshold, and which options show them, unless there are none.
void write_left_out(std::size_t rows, Output& output,
                    std::string_view options = "--top=N and --full");

// The totals of the events shown, each with what it counts.
void write_brief_totals(const Columns& columns, Output& output);

}  // namespace assay
