// The groups of the events file that break counts down: the objects that data events refer to, the
// threads that executed the code, and the types and members of the data. Calling contexts are in
// results/stack_lines.h.
#pragma once

#include "framework/collector/results/profile.h"
#include "framework/collector/results/stack_lines.h"
#include "framework/data_references/member_references.h"
#include "framework/data_references/type_tree.h"
#include "framework/events/series.h"
#include "framework/events/writer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::collector {

// False for units that count executions, whatever data the instructions refer to.
inline bool is_of_data(std::string_view unit) {
    return unit != "instructions" && unit != "branches" && unit != "mispredictions" &&
           unit != "calls" && unit != "executions";
}

// The groups of one kind that have counts in the file, and these counts.
class GroupLines {
  public:
    // `final_number` maps the number of a group to its last one. All arguments must live longer.
    GroupLines(const Profile& profile, const GroupCounts& counts,
               const std::function<std::uint32_t(std::uint32_t)>& final_number = {});

    // Sorted.
    const std::vector<std::uint32_t>& groups() const { return groups_; }
    // Adds groups that may have no counts themselves.
    void add(std::span<const std::uint32_t> more);
    // Called after add(). Numbers the groups in the file from `first` on, and returns the next free
    // number.
    std::uint32_t number_from(std::uint32_t first);
    std::uint32_t number(std::uint32_t group) const;
    // Writes the counts of a line, which consists of these rows of the database.
    void write_line(events::Writer& writer, std::span<const std::uint32_t> rows);

  private:
    std::uint32_t place_of(std::uint32_t group) const;

    const GroupCounts& counts_;
    std::size_t width_;                        // number of events
    std::vector<std::size_t> events_;          // event of the file, by column of the database
    std::vector<std::uint32_t> groups_;        // sorted
    std::uint32_t first_ = 0;                  // number of the first group in the file
    std::vector<GroupCounts::Row> rows_;       // by row of the database
    std::vector<std::uint32_t> first_of_row_;  // index in rows_
    std::vector<std::uint64_t> sums_;          // for write_line(), by place of the group and event
    std::vector<std::uint32_t> touched_;
};

// Returns the groups of Profile::objects.
GroupLines object_lines(const Profile& profile);
// Returns the calling contexts in which the objects were allocated, sorted.
std::vector<std::uint32_t> allocation_contexts(const Profile& profile, const GroupLines& objects);
// `code` must know the sources of these contexts, and `stacks` their lines.
events::Group object_group(const Profile& profile, const GroupLines& objects, std::uint32_t number,
                           CountedCode& code, StackLines& stacks);

// The bytes of the heap in use over time: in all, and of the sites that had the most at a time.
// Sites of equal names are one. The groups are those of `objects`, in the same order. Empty without
// an allocation.
std::optional<events::Series> heap_series(const Profile& profile, const GroupLines& objects,
                                          std::span<const events::Group> groups);

events::Group thread_group(const Profile& profile, const GroupLines& threads, std::uint32_t thread);

// The types of the data that instructions refer to.
class ReferencedTypes {
  public:
    explicit ReferencedTypes(const Profile& profile)
        : profile_(profile), references_(profile.types ? profile.counts->samples.rows() : 0) {}

    // Finds the types for instructions of one object. `addresses` are sorted addresses in the
    // object, `rows` their rows of the database.
    void find(const std::string& object_path, std::span<const std::uint64_t> addresses,
              std::span<const std::uint32_t> rows);
    // Called after the last find(). This object must live longer than the result.
    GroupLines lines();
    events::Group group(const GroupLines& types, std::uint32_t node) const;
    // Text for people: the part of the references with a known type. Empty if that part is not
    // known.
    std::string coverage() const;

  private:
    using Kind = data_references::MemberReference::Kind;

    std::vector<bool> data_events() const;

    const Profile& profile_;
    data_references::TypeTree tree_;
    std::vector<data_references::MemberReference> references_;  // by row
    GroupCounts counts_;                                        // by node
};

}  // namespace assay::collector
