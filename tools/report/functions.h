// The functions and calls of a page: those of a profile or, for a difference, of both profiles.
#pragma once

#include "tools/output/formats.h"
#include "tools/profile/call_graph.h"
#include "tools/profile/count_store.h"
#include "tools/profile/display_names.h"
#include "tools/profile/function_matching.h"
#include "tools/profile/profile.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::report {

// Counts of one event: a number for each row.

using Column = std::vector<std::uint64_t>;

// The largest share that one of the counts has of its total.
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

// Writes columns from rows.
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

class FunctionList {
  public:
    struct Row {
        std::string_view file, name;
        FunctionMatching::Place former;  // in the old profile, if it differs
        Column counts, old;
        Column inclusive, old_inclusive;  // with callees; empty if they are not known
    };

    // `old` may be null. A function of both profiles, matched as in `assay diff`, is one row. Both
    // must outlive this object.
    FunctionList(const Profile& profile, const Profile* old);

    // Rows by descending share.
    const std::vector<Row>& rows() const { return rows_; }
    // The row of a function of a profile, by its index there.
    std::uint32_t row_of(std::uint32_t function) const { return row_of_[function]; }
    std::uint32_t row_of_old(std::uint32_t function) const { return row_of_old_[function]; }
    // The calls of the profile.
    const CallGraph& calls() const { return calls_; }
    std::optional<std::uint32_t> find(std::string_view file, std::string_view name) const;
    // The new name of a file of the old profile.
    std::string_view file_of_old(std::string_view name) { return matching_.file(name); }

    // Writes the first `most` rows.
    void write(const DisplayNames& names, std::size_t most, JsonWriter& json) const;
    // Adds the names of all functions.
    void add_names(DisplayNames& names) const;

  private:
    using Key = std::pair<std::string_view, std::string_view>;

    void add(const Profile& profile, const std::vector<std::uint32_t>& numbers, Column Row::*counts,
             std::vector<std::uint32_t>& row_of);
    void add_inclusive(const Profile& profile, const CallGraph& graph, Column Row::*counts,
                       const std::vector<std::uint32_t>& row_of);
    void sort(Counts totals);

    FunctionMatching matching_;
    std::size_t columns_;
    bool has_old_ = false, has_inclusive_ = true;
    CallGraph calls_;
    std::vector<Row> rows_;
    std::map<Key, std::uint32_t> indices_;
    std::vector<std::uint32_t> row_of_, row_of_old_;
};

// Writes inclusive counts, callers and callees of functions. Leaves out functions and calls below
// `least_share` of every total. Writes null if the profile has no contexts.
void write_calls(const Profile& profile, const CallGraph& graph, double least_share,
                 const DisplayNames& names, JsonWriter& json);

}  // namespace assay::report
