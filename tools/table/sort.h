// By which events rows are sorted, and which are worth showing.
#pragma once

#include "framework/events/header.h"
#include "tools/profile/count_store.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// An event to sort by. With a threshold it also selects functions: those with at least that
// percentage of the event's total are shown.
struct SortEvent {
    std::string name;
    std::optional<double> threshold;
};

// As options have them: an event and, behind a colon, a threshold; a percentage. Throw Error.
std::vector<SortEvent> parse_sort(const std::vector<std::string>& words);
double parse_threshold(std::string_view option, std::string_view text);

// An event by its index, and the percentage of its total that makes a function worth showing.
struct SortColumn {
    std::size_t event;
    std::optional<double> percent;
};

// The events to sort by, all of the header if there are none; at least one has a percentage, the
// first that of `threshold` if no event has its own. Throws Error.
std::vector<SortColumn> sort_columns(const std::vector<SortEvent>& events, double threshold,
                                     const events::Header& header);

// Whether the first of two rows comes before the second: by their sizes, not their signs.
// No value if they are equal.
std::optional<bool> comes_first(Counts a, Counts b, const std::vector<SortColumn>& sort,
                                const events::Header& header);
bool is_above_threshold(Counts counts, Counts totals, const std::vector<SortColumn>& sort,
                        const events::Header& header);

}  // namespace assay
