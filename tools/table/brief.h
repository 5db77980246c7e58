// What views for one screen show of the events: those that matter, and their totals.
#pragma once

#include "framework/events/header.h"
#include "tools/output/output.h"
#include "tools/table/table.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace assay {

// The event `first`, and those that matter: the instructions, and the events that cause at least 4
// % of the estimated cycles. Without an estimate, the first ones that occurred.
std::vector<std::size_t> important_events(std::size_t first, const events::Header& header,
                                          Counts totals);

// How many rows a table shows, at least one.
struct Extent {
    std::size_t rows, lines;  // rows can have several lines
    // All rows, of any number of lines, and its title.
    bool full = false;
};
// As many rows as fit a page below the name of the profile and its totals.
Extent fitting(const Columns& columns);
// Tells that more rows are above the threshold, and which options show them, unless there are none.
void write_left_out(std::size_t rows, Output& output,
                    std::string_view options = "--top=N and --full");

// The totals of the events shown, each with what it counts.
void write_brief_totals(const Columns& columns, Output& output);

}  // namespace assay
