// The objects that data events refer to, as groups of the events file.
#pragma once

#include "framework/collector/results/context_shares.h"
#include "framework/collector/results/grouped_counts.h"
#include "framework/collector/results/profile.h"
#include "framework/collector/results/profile_stacks.h"
#include "framework/collector/trace/referenced_objects.h"
#include "framework/collector/trace/segment.h"
#include "framework/events/writer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::collector {

// Which events are of references to data.

// False for events that executions of an instruction have, whatever they refer to.
inline bool is_of_data(std::string_view unit) {
    return unit != "instructions" && unit != "branches" && unit != "mispredictions" &&
           unit != "calls" && unit != "executions";
}

// What objects have of counts that no profiler has told an object of.
//
// A count that is as much as the references of an instruction have been, of data that it has read,
// written or either, is divided as these are. Some profilers count two for what is read and written
// in one. Any other count stays of no object.

class ObjectShares {
  public:
    // `references`: how many each site has made to each object. `rows`: by instruction, as
    // SampleDatabase::find() has them.
    ObjectShares(std::span<const ReferencedObjects::Count> references, const CodeTables& code,
                 std::span<const std::uint32_t> rows);

    // Adds what objects have of a count that is told for the row of an instruction in no object.
    // `count(row)`: how much that is. `to`: by object instead of context.
    template <typename Count>
    void add(std::size_t column, const Count& count, ContextCounts& to) const {
        for (const auto& [place, references] : of_objects_) {
            const auto [row, object] = place;
            if (const auto share = find(row, count(row)))
                to.add(object, row, column, references.sums()[share->which] * share->times);
        }
    }

  private:
    struct References {
        std::uint64_t reads = 0, writes = 0, modifications = 0;

        std::array<std::uint64_t, 5> sums() const {
            return {reads + modifications, writes, writes + modifications,
                    reads + writes + modifications, modifications};
        }
    };
    struct Share {
        std::size_t which;  // of the sums
        std::uint64_t times;
    };
    std::optional<Share> find(std::uint32_t row, std::uint64_t count) const;

    std::map<std::pair<std::uint32_t, std::uint32_t>, References> of_objects_;  // by row and object
    std::map<std::uint32_t, References> of_rows_;
};

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
