// Counts by event, as the page has them: a column for each event, a number in it for each row.
#pragma once

#include "tools/output/formats.h"
#include "tools/profile/count_store.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::report {

using Column = std::vector<std::uint64_t>;

// The largest share of a total that the counts have.
inline double largest_share(Counts counts, Counts totals) {
    double largest = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
        if (totals[i] != 0)
            largest =
                std::max(largest, static_cast<double>(counts[i]) / static_cast<double>(totals[i]));
    return largest;
}

inline void write_columns(std::string_view key, const std::vector<Column>& columns,
                          JsonWriter& json) {
    json.key(key);
    json.begin_array();
    for (const Column& column : columns) json.numbers(column);
    json.end_array();
}

// The same, of rows.
inline void write_rows(std::string_view key, const std::vector<Counts>& rows, std::size_t events,
                       JsonWriter& json) {
    std::vector<Column> columns(events, Column(rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t event = 0; event < events; ++event) columns[event][i] = rows[i][event];
    write_columns(key, columns, json);
}

// Fills columns row by row.
class Columns {
  public:
    explicit Columns(std::size_t events) : columns_(events) {}

    void add(Counts row) {
        for (std::size_t event = 0; event < columns_.size(); ++event)
            columns_[event].push_back(row[event]);
    }
    void write(std::string_view key, JsonWriter& json) const { write_columns(key, columns_, json); }

  private:
    std::vector<Column> columns_;
};

}  // namespace assay::report
