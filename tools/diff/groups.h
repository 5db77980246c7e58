// Whose counts changed from one profile to another: data objects, types, members, threads.
#pragma once

#include "framework/events/reader.h"
#include "tools/diff/changes.h"

#include <deque>
#include <span>
#include <string>
#include <vector>

namespace assay::diff {

// Groups of a kind, by their names with those of the groups that they are in. Several of one name
// are added up.
struct GroupChanges {
    std::vector<Change> rows;  // the name is the function, the kind the file
    std::deque<std::string> names;
    std::deque<std::vector<std::uint64_t>> counts;
};
// Throws Error if one of the sides has none of the kind, or cannot be read twice.
GroupChanges group_changes(const std::string& kind, const events::EventChoice& choice,
                           std::span<const std::string> old_paths,
                           std::span<const std::string> new_paths);

}  // namespace assay::diff
