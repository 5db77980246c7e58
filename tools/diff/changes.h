// What changed from one profile to another, by function.
#pragma once

#include "framework/events/header.h"
#include "tools/profile/function_matching.h"
#include "tools/profile/profile.h"
#include "tools/table/table.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace assay::diff {

// A function in both profiles; zeros where one does not have it.
struct Change {
    std::string_view file, function;
    Counts before, after;
    // Where the old profile has it, if that is another place.
    FunctionMatching::Place former{};

    std::int64_t difference(std::size_t event) const {
        return static_cast<std::int64_t>(after[event] - before[event]);
    }
};

// Of every function that one of the profiles has, which must outlive it. Sorted by file and
// function, so that what is written does not depend on the order of the input.
struct Changes {
    FunctionMatching functions;
    std::vector<Change> rows;
    // What rows refer to besides the profiles' counts: of functions that only one has, and of
    // several that are compared as one.
    std::vector<std::uint64_t> zeros;
    std::deque<std::vector<std::uint64_t>> sums;
};
// `match`: functions whose names have changed, too.
Changes changes_of(const Profile& before, const Profile& after, bool match);

// "+1,234", and "+5.0%", "new", "gone", or "" if nothing changed.
std::string signed_text(std::int64_t difference);
std::string relative_text(std::uint64_t before, std::uint64_t after);

// Without its sign.
std::uint64_t size_of(std::int64_t difference);

// Those that changed enough, the largest changes first.
std::vector<const Change*> important(const std::vector<Change>& changes,
                                     const std::vector<SortColumn>& sort, Counts old_totals);

// Two columns for each event: by how much it changed, and what part of what it was that is.

class ChangeTable {
  public:
    // Of the events `shown`.
    ChangeTable(const events::Header& header, std::vector<std::size_t> shown, bool color);

    // Makes columns wide enough. All rows, before the first one is written.
    void fit(const Change& change);
    void fit(Counts counts);

    // Lines, with `text` behind the columns.
    std::string heading(std::string_view text) const;
    std::string row(Counts counts, std::string_view text) const;
    std::string row(const Change& change, std::string_view text) const;

  private:
    void fit_count(std::size_t column, const std::string& text);
    void append(std::string& out, std::size_t column, std::string_view count,
                std::string_view relative, std::string_view color) const;

    struct Width {
        std::size_t count = 0, relative = 0;
    };
    const events::Header& header_;
    std::vector<std::size_t> shown_;
    std::vector<Width> widths_;
    bool color_;
};

}  // namespace assay::diff
