// The tree of calling contexts: functions below their callers, from outside of all calls on.
#pragma once

#include "tools/output/json_writer.h"
#include "tools/output/output.h"
#include "tools/profile/stack_tree.h"
#include "tools/table/sort.h"
#include "tools/table/table.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::annotate {

class TreeTable {
  public:
    TreeTable(const WholeProfile& profile, const Columns& columns,
              const std::vector<SortColumn>& sort);

    void write(Output& output) const;
    // Under the key "tree".
    void write_json(JsonWriter& json) const;

  private:
    Counts inclusive(std::uint32_t frame) const { return tree_.frames()[frame].counts; }
    Counts exclusive(std::uint32_t frame) const {
        return Counts(exclusive_).subspan(frame * columns_.totals.size(), columns_.totals.size());
    }
    void keep_exclusive();
    void choose(const std::vector<SortColumn>& sort);
    std::string text(std::uint32_t frame) const;

    const Columns& columns_;
    StackTree tree_;
    std::vector<std::uint64_t> exclusive_;  // by frame and event
    // Frames above the threshold, each followed by those in it, the most important first.
    std::vector<std::uint32_t> shown_;
};

}  // namespace assay::annotate
