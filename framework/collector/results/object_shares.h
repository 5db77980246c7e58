// What objects have of counts that no profiler has told an object of.
//
// A count that is as much as the references of an instruction have been, of data that it has read,
// written or either, is divided as these are. Some profilers count two for what is read and written
// in one. Any other count stays of no object.
#pragma once

#include "framework/collector/results/context_counts.h"
#include "framework/collector/trace/code_tables.h"
#include "framework/collector/trace/referenced_objects.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace assay::collector {

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

}  // namespace assay::collector
