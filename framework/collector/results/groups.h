// The groups of the events file that counts are broken down by, but for calling contexts
// (results/stack_lines.h): the objects that data events refer to, the threads that have executed
// what was counted, the types and members that data events refer to.
#pragma once

#include "framework/collector/results/profile.h"
#include "framework/collector/results/stack_lines.h"
#include "framework/data_references/member_references.h"
#include "framework/data_references/type_tree.h"
#include "framework/events/writer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::collector {

// False for events that executions of an instruction have, whatever they refer to.
inline bool is_of_data(std::string_view unit) {
    return unit != "instructions" && unit != "branches" && unit != "mispredictions" &&
           unit != "calls" && unit != "executions";
}

// The groups of one kind that have counts in the file, and these counts.
class GroupLines {
  public:
    // `final_number`: what a group's number is in the end. What is given must live longer.
    GroupLines(const Profile& profile, const GroupCounts& counts,
               const std::function<std::uint32_t(std::uint32_t)>& final_number = {});

    // Sorted.
    const std::vector<std::uint32_t>& groups() const { return groups_; }
    // Adds groups that have no counts by themselves.
    void add(std::span<const std::uint32_t> more);
    // Behind those, numbers them in the file from `first` on. Returns what comes behind them.
    std::uint32_t number_from(std::uint32_t first);
    std::uint32_t number(std::uint32_t group) const;
    // The counts of a line, which are those of some rows of the database.
    void write_line(events::Writer& writer, std::span<const std::uint32_t> rows);

  private:
    std::uint32_t place_of(std::uint32_t group) const;

    const GroupCounts& counts_;
    std::size_t width_;                        // events
    std::vector<std::size_t> events_;          // of the file, by column of the database
    std::vector<std::uint32_t> groups_;        // sorted
    std::uint32_t first_ = 0;                  // number in the file
    std::vector<GroupCounts::Row> rows_;       // by row of the database
    std::vector<std::uint32_t> first_of_row_;  // in those
    std::vector<std::uint64_t> sums_;          // of write_line(), by place of the group and event
    std::vector<std::uint32_t> touched_;
};

// Those of Profile::objects.
GroupLines object_lines(const Profile& profile);
// Where they were allocated: calling contexts, sorted.
std::vector<std::uint32_t> allocation_contexts(const Profile& profile, const GroupLines& objects);
// `code` knows the sources of these contexts, and `stacks` their lines.
events::Group object_group(const Profile& profile, const GroupLines& objects, std::uint32_t number,
                           CountedCode& code, StackLines& stacks);

events::Group thread_group(const Profile& profile, const GroupLines& threads, std::uint32_t thread);

// What the types of data are that instructions refer to.
class ReferencedTypes {
  public:
    explicit ReferencedTypes(const Profile& profile)
        : profile_(profile), references_(profile.types ? profile.counts->samples.rows() : 0) {}

    // Finds out about instructions of one object: their addresses in it, sorted, and rows of the
    // database.
    void find(const std::string& object_path, std::span<const std::uint64_t> addresses,
              std::span<const std::uint32_t> rows);
    // After all of those. This must live longer.
    GroupLines lines();
    events::Group group(const GroupLines& types, std::uint32_t node) const;
    // For people: of how many references the type is known. Empty if that is not known.
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
