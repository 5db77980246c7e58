// What groups have of counts that no profiler has told a group of: contexts and threads by what
// they have executed, objects by the references to them.
//
// A count to which each execution of an instruction has added the same, as of instructions, or of
// data references, is a multiple of the executions: each context, or thread, has as many of it as
// it has executions. Where executions differ by themselves, as those of repeated string
// instructions, only a count that is equal to them is taken for such. A count of mispredicted
// branches is a multiple of the mispredictions. Any other stays in no group.
//
// A count that is as much as the references of an instruction have been, of data that it has read,
// written or either, is divided among objects as these are. Some profilers count two for what is
// read and written in one. Any other count stays of no object.
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

// How often instructions that follow one another in a block have been executed in a context, or by
// a thread, whose number stands in place of the context. There can be several of a context and a
// block, of all or a part of its instructions; they add up.
struct ContextExecutions {
    std::uint32_t context;
    std::uint32_t first_instr, instr_count;
    std::uint64_t executions;
    std::uint64_t mispredictions;  // of the last one
};

class ExecutionShares {
  public:
    struct Instructions {
        CodeTables code;
        std::span<const std::uint64_t> executions;      // by instruction
        std::span<const std::uint64_t> mispredictions;  // by block; empty if they are not known
        std::vector<std::uint32_t> rows;                // by instruction: SampleDatabase::find()
    };
    // What is to be divided, by row of the sample database, `columns` for each.
    // `alike`: likewise, the row that stands for it and all others that are of the same functions
    // to whoever reads the counts of contexts. Shares are counted for that one.
    ExecutionShares(Instructions instructions, std::span<const std::uint64_t> counts,
                    std::size_t columns, std::span<const std::uint32_t> alike);

    // Adds what they have. Quickest with those of one context one behind the other.
    void add(std::span<const ContextExecutions> all, GroupCounts& to);

  private:
    // Of a row's count: what each execution has of it, or each misprediction.
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
    std::vector<Share> shares_;  // one row's behind the other, with the row that stands for it
    std::vector<std::uint32_t> first_share_;  // by row, and the end
    std::vector<Share> block_shares_;         // those of one row and column added up
    std::vector<Range> shares_of_;            // by block, once they are made
    std::vector<Share> some_shares_;          // of a part of a block
    // What no context has had yet, of the executions of an instruction that is the first of some,
    // and of the mispredictions of a block: a damaged trace may have more.
    std::vector<std::uint64_t> executions_left_, mispredictions_left_;
    // The present context's, by row that stands for others.
    std::uint32_t context_ = 0;
    std::vector<std::uint32_t> touched_, place_in_touched_;
    std::vector<std::uint64_t> sums_;
};

class ReferenceShares {
  public:
    // `references`: how many each site has made to each object. `rows`: by instruction, as
    // SampleDatabase::find() has them.
    ReferenceShares(std::span<const ReferencedObjects::Count> references, const CodeTables& code,
                    std::span<const std::uint32_t> rows);

    // Adds what objects have of `counts`, which are by row, `columns` for each.
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
        std::size_t which;  // of the sums
        std::uint64_t times;
    };
    std::optional<Share> find(std::uint32_t row, std::uint64_t count) const;

    std::map<std::pair<std::uint32_t, std::uint32_t>, References> of_objects_;  // by row and object
    std::map<std::uint32_t, References> of_rows_;
};

}  // namespace assay::collector
