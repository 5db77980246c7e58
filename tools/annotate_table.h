// Columns of counts: as wide as their widest number, with percentages of the totals and, on a
// terminal, colours by percentage.
#pragma once

#include "tools/annotate_profile.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::annotate {

// What all tables of one annotation share.
struct Columns {
    const events::Header& header;
    Counts totals;
    std::vector<std::size_t> shown;  // indices of events
    bool percentages;
    bool color;
};

std::vector<std::string> event_names(const events::Header& header);
// The index of an event that the user named with `option`. Throws Error.
std::size_t event_index(std::string_view option, const std::string& name,
                        const events::Header& header);
// The events that --show names; all of them if it names none. Throws Error.
std::vector<std::size_t> shown_events(const std::vector<std::string>& show,
                                      const events::Header& header);

class Table {
  public:
    explicit Table(const Columns& columns);

    // Makes room for a row, before any is formatted.
    void fit(Counts counts);

    // Event names over their columns; lines ended by a newline, as the others.
    std::string heading(std::string_view text) const;
    std::string row(Counts counts, std::string_view text) const;
    // A row without counts.
    std::string empty_row(std::string_view text) const;

  private:
    void append_cell(std::string& out, std::size_t column, std::uint64_t count) const;

    struct Width {
        std::size_t count, percentage;
    };
    const Columns& columns_;
    std::vector<Width> widths_;
};

}  // namespace assay::annotate
