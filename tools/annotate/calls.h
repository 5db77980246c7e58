// Tables of callers and callees, and of calling contexts.
#pragma once

#include "tools/output/formats.h"
#include "tools/output/output.h"
#include "tools/profile/display_names.h"
#include "tools/profile/profile.h"
#include "tools/profile/stack_tree.h"
#include "tools/table/brief.h"
#include "tools/table/table.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::annotate {

class CallTable {
  public:
    CallTable(const Profile& profile, const Columns& columns, const std::vector<SortColumn>& sort,
              const DisplayNames& names, const Extent& extent);

    void write(Output& output) const;
    // Under the key "calls".
    void write_json(JsonWriter& json) const;

  private:
    struct Call {
        std::string_view file, function;  // of the caller, or of the callee
        std::uint64_t number;             // 0 if unknown
        std::vector<std::uint64_t> counts;
    };
    struct Function {
        std::string_view file, name;
        std::vector<std::uint64_t> exclusive, inclusive;
        std::vector<Call> callers, callees;
    };

    bool is_shown(Counts counts) const;
    bool is_call_shown(Counts counts) const;
    void put_in_order(std::vector<Call>& calls) const;
    void write_calls(std::string_view mark, const std::vector<Call>& calls, const Table& table,
                     Output& output) const;
    std::string name_text(std::string_view file, std::string_view function) const;
    void write_json_calls(std::string_view key, const std::vector<Call>& calls,
                          JsonWriter& json) const;

    const Columns& columns_;
    const std::vector<SortColumn>& sort_;
    const DisplayNames& names_;
    const Extent extent_;
    std::vector<Function> functions_;  // above the threshold, the most important first
};

// The tree of calling contexts: each function is indented below its caller.

class TreeTable {
  public:
    TreeTable(const Profile& profile, const Columns& columns, const std::vector<SortColumn>& sort,
              const DisplayNames& names, const Extent& extent);

    void write(Output& output) const;
    // Under the key "tree".
    void write_json(JsonWriter& json) const;

  private:
    Counts inclusive(std::uint32_t frame) const { return tree_.frames()[frame].counts; }
    Counts exclusive(std::uint32_t frame) const {
        return Counts(exclusive_).subspan(frame * columns_.totals.size(), columns_.totals.size());
    }
    void keep_exclusive();
    std::vector<std::uint32_t> most_important(const std::vector<SortColumn>& sort);
    void choose(const std::vector<SortColumn>& sort);
    std::string text(std::uint32_t frame) const;

    const Columns& columns_;
    const DisplayNames& names_;
    StackTree tree_;
    std::vector<std::uint64_t> exclusive_;  // by frame and event
    const Extent extent_;
    // Frames above the threshold, each followed by those in it, the most important first.
    std::vector<std::uint32_t> shown_;
    std::size_t left_out_ = 0;  // frames above the threshold that are not shown
};

}  // namespace assay::annotate
