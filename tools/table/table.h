// Prints columns of counts: as wide as their widest number, with percentages of the totals and, on
// a terminal, colours by percentage.
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

// An event to sort by. With a threshold it also selects functions: those with at least this
// percentage of the event's total.
struct SortEvent {
    std::string name;
    std::optional<double> threshold;
};

// Parse the values of options: an event with an optional :THRESHOLD, and a percentage. Throw Error.
std::vector<SortEvent> parse_sort(const std::vector<std::string>& words);
double parse_threshold(std::string_view option, std::string_view text);

// An event by its index. A function is shown if it has at least `percent` of the event's total.
struct SortColumn {
    std::size_t event;
    std::optional<double> percent;
};

// The events to sort by; without any, those of the header. At least one has a percentage: without
// any, the first gets `threshold`. Throws Error.
std::vector<SortColumn> sort_columns(const std::vector<SortEvent>& events, double threshold,
                                     const events::Header& header);

// True if the first row comes before the second. Compares sizes and ignores signs. No value if the
// rows are equal.
std::optional<bool> comes_first(Counts a, Counts b, const std::vector<SortColumn>& sort,
                                const events::Header& header);
bool is_above_threshold(Counts counts, Counts totals, const std::vector<SortColumn>& sort,
                        const events::Header& header);

// What a table shows of each count.
enum class Cells : std::uint8_t { kCounts, kShares, kCountsAndShares };

// Settings that all tables of one output share.
struct Columns {
    const events::Header& header;
    Counts totals;
    // Indices of events. Indices from the number of events on mean derived figures.
    std::vector<std::size_t> shown;
    Cells cells;
    bool color;
    std::size_t width = 0;  // characters of a row; 0: as many as it has
};

std::vector<std::string> event_names(const events::Header& header);
// The index of an event that the user named with `option`. Throws Error.
std::size_t event_index(std::string_view option, const std::string& name,
                        const events::Header& header);
// The events and derived figures that --show names; all events if `show` is empty. Throws Error.
std::vector<std::size_t> shown_events(const std::vector<std::string>& show,
                                      const events::Header& header);
std::string shown_name(std::size_t column, const events::Header& header);

// With commas between thousands, and with a sign if the profile is a difference.
std::string count_text(std::uint64_t count, const events::Header& header);
// The value of a figure in its unit, for people.
std::string figure_text(double value, std::string_view unit);
// Calculates the figure; "none" if it has no value.
std::string derived_text(const events::Derived& derived, const events::Formula& formula,
                         Counts counts);
// The size of a count without its sign.
double magnitude(std::uint64_t count, const events::Header& header);

class Table {
  public:
    explicit Table(const Columns& columns);

    // Makes room for a row. Call it for all rows before the first row(). `running` are the sums of
    // this row and all earlier ones; their percentages are shown unless it is empty.
    void fit(Counts counts, Counts running = {});

    // Event names over their columns. Each line ends with a newline, as those of rows do.
    std::string heading(std::string_view text) const;
    std::string row(Counts counts, std::string_view text, Counts running = {}) const;
    std::string empty_row(std::string_view text) const;
    // The characters that Columns leaves for the text of a row.
    std::size_t text_width() const;

  private:
    struct Cell {
        std::string count, percentage, rest;  // 1,234| (12.5%|, 80.1%)
    };
    Cell cell(std::size_t column, Counts counts, Counts running) const;
    std::string with_text(std::string cells, std::string_view text) const;
    std::string_view color(std::size_t column, Counts counts) const;

    struct Width {
        std::size_t count, percentage, rest;
    };
    const Columns& columns_;
    std::vector<Width> widths_;
    std::vector<events::Formula> formulas_;  // of all derived figures if any is shown
};

// Writes columns of counts as JSON.

// Names, descriptions and units of the columns, under the key "events".
void write_event_list(const events::Header& header, const std::vector<std::size_t>& shown,
                      JsonWriter& json);
// Counts of the columns, under `key`. A figure without a value is null.
void write_counts(std::string_view key, const events::Header& header,
                  const std::vector<std::size_t>& shown, Counts counts, JsonWriter& json);

}  // namespace assay
