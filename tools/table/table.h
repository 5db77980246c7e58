// Columns of counts: as wide as their widest number, with percentages of the totals and, on a
// terminal, colours by percentage.
#pragma once

#include "framework/events/formula.h"
#include "framework/events/header.h"
#include "tools/output/formats.h"
#include "tools/profile/count_store.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// By which events rows are sorted, and which are worth showing.

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

// What all tables of one output share.
struct Columns {
    const events::Header& header;
    Counts totals;
    // Indices of events; from how many there are, indices of derived figures follow.
    std::vector<std::size_t> shown;
    bool percentages;
    bool color;
};

std::vector<std::string> event_names(const events::Header& header);
// The index of an event that the user named with `option`. Throws Error.
std::size_t event_index(std::string_view option, const std::string& name,
                        const events::Header& header);
// The events and derived figures that --show names; all events if it names none. Throws Error.
std::vector<std::size_t> shown_events(const std::vector<std::string>& show,
                                      const events::Header& header);
std::string shown_name(std::size_t column, const events::Header& header);

// With a comma between thousands; of a difference, with its sign.
std::string count_text(std::uint64_t count, const events::Header& header);
// The value of a figure as people read it, in its unit.
std::string figure_text(double value, std::string_view unit);
// The same, where it is calculated; "none" if it has no value.
std::string derived_text(const events::Derived& derived, const events::Formula& formula,
                         Counts counts);
// Without its sign.
double magnitude(std::uint64_t count, const events::Header& header);

class Table {
  public:
    explicit Table(const Columns& columns);

    // Makes room for a row, before any is formatted. `running` are the sums of this row and those
    // before it, whose percentages are shown too; empty: they are not.
    void fit(Counts counts, Counts running = {});

    // Event names over their columns; lines ended by a newline, as the others.
    std::string heading(std::string_view text) const;
    std::string row(Counts counts, std::string_view text, Counts running = {}) const;
    // A row without counts.
    std::string empty_row(std::string_view text) const;

  private:
    struct Cell {
        std::string count, percentage, rest;  // 1,234| (12.5%|, 80.1%)
    };
    Cell cell(std::size_t column, Counts counts, Counts running) const;
    std::string_view color(std::size_t column, Counts counts) const;

    struct Width {
        std::size_t count, percentage, rest;
    };
    const Columns& columns_;
    std::vector<Width> widths_;
    std::vector<events::Formula> formulas_;  // of all derived figures, if any is shown
};

// Columns of counts in JSON.

// Names, descriptions and units of the columns shown, under the key "events".
void write_event_list(const events::Header& header, const std::vector<std::size_t>& shown,
                      JsonWriter& json);
// Those of the columns shown; a figure that has no value there is null.
void write_counts(const events::Header& header, const std::vector<std::size_t>& shown,
                  Counts counts, JsonWriter& json);

}  // namespace assay
