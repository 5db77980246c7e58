// Counts by group: data objects, types, members, threads or processes, with their inner groups.
#pragma once

#include "tools/output/formats.h"
#include "tools/output/output.h"
#include "tools/profile/display_names.h"
#include "tools/profile/groups.h"
#include "tools/table/brief.h"
#include "tools/table/table.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::annotate {

class GroupTable {
  public:
    // `lines` adds the source lines of the counts. Throws Error if the profile has no groups of the
    // kind.
    GroupTable(const Groups& profile, std::string_view kind, const Columns& columns,
               const std::vector<SortColumn>& sort, const DisplayNames& names, bool lines,
               const Extent& extent);

    void write(Output& output) const;
    // Under the key "groups".
    void write_json(JsonWriter& json) const;

    // Indices of the events that groups of the kind count.
    static std::vector<std::size_t> counted_events(const Groups& profile, std::string_view kind,
                                                   std::size_t events);

  private:
    // A group, or the bytes between two groups in their outer group.
    struct Row {
        std::uint32_t group;  // kNone: bytes that are in no group
        std::size_t depth;
        std::string text;
    };

    std::string object_text(const Groups::Group& group) const;
    std::string group_text(const Groups::Group& group, bool outermost) const;
    void add(std::uint32_t group, std::size_t depth);
    void add_inner(const Groups::Group& group, std::size_t depth);
    void add_gap(std::uint64_t from, std::uint64_t to, std::size_t depth);
    std::vector<Groups::Line> lines_of(std::uint32_t group) const;
    std::string line_text(const Groups::Line& line) const;
    std::vector<std::string> text_of(const Row& row, const Table& table) const;
    void write_json(std::uint32_t group, JsonWriter& json) const;

    const Groups& profile_;
    const std::string kind_;
    const Columns& columns_;
    const std::vector<SortColumn>& sort_;
    const DisplayNames& names_;
    const bool lines_;
    const Extent extent_;
    std::vector<std::uint32_t> shown_;  // outermost groups of the kind, in order
    std::vector<Row> rows_;
    std::vector<std::uint64_t> rest_;  // counts outside all groups of the kind
};

}  // namespace assay::annotate
