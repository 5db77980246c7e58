// Divides counts among groups if no profiler has given a group. Contexts and threads get shares by
// their executions, objects by the references to them.
//
// Some counts are a multiple of an instruction's executions, for example numbers of instructions or
// of data references. Each context or thread gets the same multiple of its own executions. The
// executions of some instructions differ, for example of repeated string instructions. For these, a
// count is divided only if it equals the executions. Counts of mispredicted branches are multiples
// of the mispredictions. All other counts stay without a group.
//
// A count is divided among objects if it equals the number of an instruction's references: reads,
// writes, or both. Some profilers count two for a reference that reads and writes. All other counts
// stay without an object.
#pragma once

#include "framework/collector/results/counts.h"
#include "framework/collector/trace/referenced_objects.h"
#include "framework/collector/trace/segment.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace assay::collector {

// Executions of adjacent instructions of a block, in a context or by a thread. `context` has the
// number of the context or thread. There can be several entries of a context and a block, each for
// all or some of the block's instructions; their executions add up.
struct ContextExecutions {
    std::uint32_t context;
    std::uint32_t first_instr, instr_count;
    std::uint64_t executions;
    std::uint64_t mispredictions;  // of the last instruction
};

class ExecutionShares {
  public:
    struct Instructions {
        CodeTables code;
        std::span<const std::uint64_t> executions;      // by instruction
        std::span<const std::uint64_t> mispredictions;  // by block; empty if they are not known
        std::vector<std::uint32_t> rows;  // by instruction: the result of SampleDatabase::find()
    };
    // `counts` are the counts to divide, by row of the sample database, `columns` for each row.
    // `alike` has for each row the row that stands for it (ProfileWriter::alike()). Shares are
    // added to that row.
    ExecutionShares(Instructions instructions, std::span<const std::uint64_t> counts,
                    std::size_t columns, std::span<const std::uint32_t> alike);

    // Adds the shares of all contexts to `to`. This is fastest if the entries of each context are
    // adjacent.
    void add(std::span<const ContextExecutions> all, GroupCounts& to);

  private:
    // The part of a row's count that each execution, or each misprediction, has added.
    struct Share {
        std::uint32_t row;
        std::uint32_t column : 31;
        std::uint32_t mispredicted : 1;
        std::uint64_t each;
    };
    using Range = std::pair<std::uint32_t, std::uint32_t>;

    void find_shares(std::span<const std::uint64_t> counts, std::size_t columns,
                     std::span<const std::uint32_t> alike);
    void append(std::uint32_t instr, bool last, std::vector<Share>& shares) const;
    void append_all(std::uint32_t first_instr, std::uint32_t count, std::vector<Share>& shares);
    std::span<const Share> shares_of_block(std::uint32_t block);
    void add_shares(std::span<const Share> shares, const ContextExecutions& executed);
    void flush(GroupCounts& to);
    static std::uint64_t take(std::uint64_t wanted, std::uint64_t& left);

    Instructions instructions_;
    std::size_t columns_;
    std::vector<Share> shares_;               // row by row, each with the row that stands for it
    std::vector<std::uint32_t> first_share_;  // by row, and one for the end
    std::vector<Share> block_shares_;         // shares of one row and column are added up
    std::vector<Range> shares_of_;            // by block; UINT32_MAX until they are made
    std::vector<Share> some_shares_;          // for a part of a block
    // Executions by first instruction, and mispredictions by block, that no context has got yet. A
    // damaged trace may claim more.
    std::vector<std::uint64_t> executions_left_, mispredictions_left_;
    // For the present context, by the row that stands for others.
    std::uint32_t context_ = 0;
    std::vector<std::uint32_t> touched_, place_in_touched_;
    std::vector<std::uint64_t> sums_;
};

class ReferenceShares {
  public:
    // `references`: the number of references that each site has made to each object. `rows`: by
    // instruction, the result of SampleDatabase::find().
    ReferenceShares(std::span<const ReferencedObjects::Count> references, const CodeTables& code,
                    std::span<const std::uint32_t> rows);

    // Adds the shares of objects to `to`. `counts` are by row, `columns` for each row.
    void add(std::span<const std::uint64_t> counts, std::size_t columns, GroupCounts& to) const;

  private:
    struct References {
        std::uint64_t reads = 0, writes = 0, modifications = 0;

        std::array<std::uint64_t, 5> sums() const {
            return {reads + modifications, writes, writes + modifications,
                    reads + writes + modifications, modifications};
        }
    };
    struct Share {
        std::size_t which;  // index in sums()
        std::uint64_t times;
    };
    std::optional<Share> find(std::uint32_t row, std::uint64_t count) const;

    std::map<std::pair<std::uint32_t, std::uint32_t>, References> of_objects_;  // by row and object
    std::map<std::uint32_t, References> of_rows_;
};

}  // namespace assay::collector
