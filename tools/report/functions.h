// The functions of a page, and who calls whom: those of a profile or, where it shows a difference,
// of both.
#pragma once

#include "tools/output/formats.h"
#include "tools/profile/function_matching.h"
#include "tools/profile/profile.h"
#include "tools/report/columns.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::report {

class FunctionList {
  public:
    static constexpr std::size_t kMostWritten = 20'000;  // that a page can hold

    struct Row {
        std::string_view file, name;
        FunctionMatching::Place former;  // in the old profile, if that is another place
        Column counts, old;
    };

    // `old` may be null. Functions that are one in both, as `assay diff` finds them, are one row.
    // Both must outlive this.
    FunctionList(const Profile& profile, const Profile* old);

    // The highest shares first.
    const std::vector<Row>& rows() const { return rows_; }
    // The row of a function of a profile, by its number there.
    std::uint32_t row_of(std::uint32_t function) const { return row_of_[function]; }
    std::uint32_t row_of_old(std::uint32_t function) const { return row_of_old_[function]; }
    std::optional<std::uint32_t> find(std::string_view file, std::string_view name) const;
    // What a file of the old profile is called in the new one.
    std::string_view file_of_old(std::string_view name) { return matching_.file(name); }

    // What a page can hold of them.
    void write(JsonWriter& json) const;

  private:
    using Key = std::pair<std::string_view, std::string_view>;

    void add(const Profile& profile, const std::vector<std::uint32_t>& numbers, Column Row::*counts,
             std::vector<std::uint32_t>& row_of);
    void sort(Counts totals);

    FunctionMatching matching_;
    std::size_t columns_;
    bool has_old_ = false;
    std::vector<Row> rows_;
    std::map<Key, std::uint32_t> indices_;
    std::vector<std::uint32_t> row_of_, row_of_old_;
};

// What each function counts with all that it calls, its callers and its callees, for the page.

// Functions and calls with at least `least_share` of an event's total; null if the profile has no
// contexts.
void write_calls(const Profile& profile, double least_share, JsonWriter& json);

}  // namespace assay::report
