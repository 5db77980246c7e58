// The objects that data events refer to, as groups of the events file.
#pragma once

#include "framework/collector/results/grouped_counts.h"
#include "framework/collector/results/profile.h"
#include "framework/collector/results/profile_stacks.h"
#include "framework/events/writer.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::collector {

class ObjectGroups {
  public:
    explicit ObjectGroups(const Profile& profile);

    // Where those objects were allocated that have counts: calling contexts, sorted.
    std::vector<std::uint32_t> contexts() const;
    // What is known of others.
    struct Surroundings {
        std::function<std::uint32_t(std::string_view path)> binary;  // its number in the header
        std::function<std::uint32_t(std::uint32_t context)> stack;   // the number of its line
        std::function<symbols::Frame(std::uint32_t context)> caller;
    };
    std::vector<events::Group> groups(const Surroundings& surroundings) const;
    // The counts of a line, which are those of some rows of the database.
    void write_line(events::Writer& writer, std::span<const std::uint32_t> rows);

  private:
    events::Group group_of(std::uint32_t object, const Surroundings& surroundings) const;

    // The numbers of those with counts, and of what they are in.
    std::span<const std::uint32_t> objects() const;

    const Profile& profile_;
    std::optional<GroupedCounts> counts_;  // if there are objects
};

}  // namespace assay::collector
