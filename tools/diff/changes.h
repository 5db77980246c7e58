// Compares two profiles by function, group, calling context and value.
#pragma once

#include "framework/events/header.h"
#include "framework/events/parser.h"
#include "framework/events/reader.h"
#include "tools/expressions/expressions.h"
#include "tools/profile/function_matching.h"
#include "tools/profile/profile.h"
#include "tools/profile/stack_tree.h"
#include "tools/table/table.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace assay::diff {

// Counts of a function in both profiles. A profile without the function has zeros.
struct Change {
    std::string_view file, function;
    Counts before, after;
    // The function's place in the old profile, if it differs.
    FunctionMatching::Place former{};

    std::int64_t difference(std::size_t event) const {
        return static_cast<std::int64_t>(after[event] - before[event]);
    }
};

// Changes of all functions of both profiles, which must outlive this object. Sorted by file and
// function, so that the output does not depend on the order of the input.
struct Changes {
    FunctionMatching functions;
    std::vector<Change> rows;
    // Counts that rows refer to and profiles do not have: for functions of one profile only, and
    // for several functions compared as one.
    std::vector<std::uint64_t> zeros;
    std::deque<std::vector<std::uint64_t>> sums;
};
// `match` also compares functions whose names have changed.
Changes changes_of(const Profile& before, const Profile& after, bool match);

// "+1,234", and "+5.0%", "new", "gone", or "" if nothing changed.
std::string signed_text(std::int64_t difference);
std::string relative_text(std::uint64_t before, std::uint64_t after);

// The absolute value.
std::uint64_t size_of(std::int64_t difference);

// Changes above the threshold, the largest first.
std::vector<const Change*> important(const std::vector<Change>& changes,
                                     const std::vector<SortColumn>& sort, Counts old_totals);

// A table with two columns per event: the change, and the change relative to the old count.

class ChangeTable {
  public:
    // Shows the events with the indices `shown`.
    ChangeTable(const events::Header& header, std::vector<std::size_t> shown, bool color);

    // Makes columns wide enough. Call it for all rows before writing the first one.
    void fit(const Change& change);
    void fit(Counts counts);

    // Lines of the table. `text` follows the columns.
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

// Changes of groups of one kind. Groups are matched by their names and those of their outer groups.
// Groups with equal names are added up.
struct GroupChanges {
    std::vector<Change> rows;  // `function` has the group's name, `file` its kind
    std::deque<std::string> names;
    std::deque<std::vector<std::uint64_t>> counts;
};
// Throws Error if a profile has no groups of the kind.
GroupChanges group_changes(const std::string& kind, const Profile& before, const Profile& after);

// How often, at least, the instructions of a function had a value.
struct ValueChange {
    std::string_view file, function, list;
    std::uint64_t value, before, after;

    std::uint64_t size() const { return before > after ? before - after : after - before; }
};

// Compares calling contexts by the names of their functions, and lists of values by function.
// Receives the events of both profiles while they are read, the old profile first.
class Breakdown final : public events::Handler {
  public:
    Breakdown(std::vector<Replacement> file_names, std::vector<Replacement> function_names);

    // Call it before reading the files of a profile. These are added up.
    void begin(Side side) { side_ = side; }
    // Call it after reading both profiles. Assigns values to functions as `functions` matches them.
    // `names` also matches contexts by changed names.
    void match(FunctionMatching& functions, bool names);

    // True if both profiles have contexts.
    bool has_stacks() const { return !has_frame_[0].empty() && !has_frame_[1].empty(); }
    // Changes of the exclusive counts of contexts, without names: change i belongs to frame i of
    // stacks().
    std::vector<Change> stack_changes() const;
    const StackTree& stacks() const { return *stacks_; }
    // True if both profiles tell how often contexts were entered.
    bool counts_calls() const { return counts_calls_[0] && counts_calls_[1]; }

    // Values whose counts differ by more than the error of their lists, and by at least `percent`
    // of the old total of all lists with that name. The largest changes first. Lists that only one
    // profile has are left out.
    std::vector<ValueChange> value_changes(double percent) const;

  private:
    // file, function, name of the list
    using ListKey = std::tuple<std::string, std::string, std::string>;

    void match_stacks();

    void start(const events::Header& header) override;
    void location(const events::Location& location) override;
    void values(const Instruction& at, const events::Hotlist& list) override;
    void stack(const events::Stack& stack, Counts counts) override;
    void calls(std::uint32_t context, std::uint64_t number) override;
    void recursion(const events::Recursion& recursion, std::uint64_t number) override {
        calls(recursion.context, number);
    }

    std::vector<Replacement> file_names_, function_names_;
    Side side_ = Side::kOld;
    std::size_t columns_ = 0;
    std::string file_, function_;  // function of the values that follow
    std::unique_ptr<StackTree> stacks_;
    std::array<bool, 2> counts_calls_{};
    std::array<std::vector<bool>, 2> has_frame_;  // by side: the frames of its contexts
    std::vector<std::uint32_t> frames_;  // by the number of a context in the file being read
    std::map<ListKey, std::array<events::Hotlist, 2>> lists_;
    std::map<std::string, std::array<std::uint64_t, 2>, std::less<>> totals_;  // by list, by side
};

}  // namespace assay::diff
