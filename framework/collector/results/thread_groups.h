// The threads that have executed what was counted, as groups of the events file.
#pragma once

#include "framework/collector/results/grouped_counts.h"
#include "framework/collector/results/profile.h"
#include "framework/events/writer.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace assay::collector {

class ThreadGroups {
  public:
    explicit ThreadGroups(const Profile& profile);

    // Numbered from `first` on.
    std::vector<events::Group> groups(std::uint32_t first);
    // The counts of a line, which are those of some rows of the database.
    void write_line(events::Writer& writer, std::span<const std::uint32_t> rows);

  private:
    const Profile& profile_;
    std::uint32_t first_ = 0;
    std::optional<GroupedCounts> counts_;  // with --threads
};

}  // namespace assay::collector
