// What changed from one profile to another, by function.
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

// Whose counts changed from one profile to another: data objects, types, members, threads.

// Groups of a kind, by their names with those of the groups that they are in. Several of one name
// are added up.
struct GroupChanges {
    std::vector<Change> rows;  // the name is the function, the kind the file
    std::deque<std::string> names;
    std::deque<std::vector<std::uint64_t>> counts;
};
// Throws Error if one of the sides has none of the kind.
GroupChanges group_changes(const std::string& kind, const Profile& before, const Profile& after);

// What two profiles have beyond functions, compared: calling contexts by the names on their ways,
// and lists of values by the functions that they are of.

// How often a value was seen by the instructions of a function, at least.
struct ValueChange {
    std::string_view file, function, list;
    std::uint64_t value, before, after;

    std::uint64_t size() const { return before > after ? before - after : after - before; }
};

// Receives the events of both profiles while they are read, the old one first.
class Breakdown final : public events::Handler {
  public:
    Breakdown(std::vector<Replacement> file_names, std::vector<Replacement> function_names);

    // Before the files of a profile, which are added up.
    void begin(Side side) { side_ = side; }
    // When both are read: compares values where functions are shown, and contexts by names:
    // `names`: by all that the same name has become, not by equal ones only.
    void match(FunctionMatching& functions, bool names);

    bool has_stacks() const { return stacks_ && stacks_->frames().size() > 1; }
    // What each context itself counts. A change has no names: it is at the place that its frame has
    // in stacks().
    std::vector<Change> stack_changes() const;
    const StackTree& stacks() const { return *stacks_; }

    // Values whose counts differ by more than the lists may be wrong, and by at least so many per
    // cent of what all lists of that name had counted before. The largest changes first.
    std::vector<ValueChange> value_changes(double percent) const;

  private:
    // File, function, name of the list.
    using ListKey = std::tuple<std::string, std::string, std::string>;

    void match_stacks();

    void start(const events::Header& header) override;
    void location(const events::Location& location) override;
    void values(const Instruction& at, const events::Hotlist& list) override;
    void stack(const events::Stack& stack, Counts counts) override;

    std::vector<Replacement> file_names_, function_names_;
    Side side_ = Side::kOld;
    std::size_t columns_ = 0;
    std::string file_, function_;  // of the values that follow
    std::unique_ptr<StackTree> stacks_;
    std::array<std::vector<bool>, 2> has_frame_;  // by side: which frames its contexts have
    std::vector<std::uint32_t> frames_;  // by the number of a context in the file being read
    std::map<ListKey, std::array<events::Hotlist, 2>> lists_;
    std::map<std::string, std::uint64_t, std::less<>> old_totals_;  // by name of the list
};

}  // namespace assay::diff
