// What has been counted, by instruction, and whose it is: of which calling context, which object
// and which thread.
#pragma once

#include "framework/collector/results/sample_database.h"
#include "framework/collector/results/sampling.h"
#include "framework/collector/trace/context_tree.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <tuple>
#include <vector>

namespace assay::collector {

// Counts by group and instruction: one column per event of all profilers. Groups have numbers:
// contexts those of the ContextTree, objects those of MemoryObjects, threads
// ThreadContexts::number(), types those of their nodes.
//
// There can be as many rows as groups times instructions, and most have one or two counts that
// are not 0: only these take room. About 50 bytes for a row.
class GroupCounts {
  public:
    // Stands for all instructions of a group.
    static constexpr std::uint32_t kAnyRow = UINT32_MAX;
    // Beyond this many rows, what is new counts for its group as a whole.
    static constexpr std::size_t kMostRows = 12 * 1024 * 1024;

    struct Row {
        std::uint32_t group;
        std::uint32_t instruction;  // the sample database's row, or kAnyRow
        std::uint32_t number;       // for each_count()
    };

    explicit GroupCounts(std::size_t most = kMostRows) : most_(most), slots_(1024) {}

    void add(std::uint32_t group, std::uint32_t instruction, std::size_t column,
             std::uint64_t weight);
    // Calls `visit(column, count)` for those of the row that have been added to.
    template <typename Visit>
    void each_count(std::uint32_t row, const Visit& visit) const {
        for (std::uint32_t cell = row; cell != kNone; cell = cells_[cell].next)
            visit(std::size_t{cells_[cell].column}, cells_[cell].count);
    }
    // Replaces each count by `change(column, count)`.
    template <typename Change>
    void change_counts(const Change& change) {
        for (Cell& cell : cells_) cell.count = change(std::size_t{cell.column}, cell.count);
    }
    bool empty() const { return rows_ == 0; }
    // By group, then by instruction. Valid until the next add().
    std::vector<Row> sorted_rows() const;

  private:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Slot : Row {
        Slot() : Row{0, 0, kNone} {}  // free
    };
    struct Cell {
        std::uint64_t count;
        std::uint32_t next;  // of the row
        std::uint32_t column;
    };

    // The slot of the row, which is added if it is a new one.
    std::size_t slot_for(std::uint32_t group, std::uint32_t instruction);
    std::size_t slot_of(std::uint32_t group, std::uint32_t instruction) const;
    void grow();

    std::size_t most_;
    std::size_t rows_ = 0;
    std::vector<Slot> slots_;  // rows by hash: open addressing, a power of two
    std::deque<Cell> cells_;   // a row has at least one; its number is that of the last
};

// How counts are broken down by the groups of one kind.
struct Breakdown {
    static constexpr std::uint32_t kNoGroup = ContextTree::kNone;

    // A profiler tells that a count of an instruction is of that group, or of none.
    void tell(std::uint32_t group, std::uint32_t row, std::size_t column, std::uint64_t weight);

    std::size_t columns;
    // What no profiler tells the group of is going to be divided among the groups.
    bool divides = false;
    GroupCounts counts = GroupCounts();
    // By row of the samples and column: of how much profilers have told the group, or that it is of
    // none. Only if `divides`.
    std::vector<std::uint64_t> told = {};
};

struct Counts {
    explicit Counts(std::size_t columns)
        : samples(columns), contexts{columns}, objects{columns}, threads{columns} {}

    // By row of the samples and column: of how much no profiler has told a group. 0 in columns that
    // are not to be divided.
    std::vector<std::uint64_t> untold(const Breakdown& breakdown,
                                      const std::vector<bool>& divided_columns) const;
    // Makes what was counted in bursts estimates of the whole run.
    void scale(const Sampling& sampling, const std::vector<bool>& unscaled_columns);
    // Adds the samples and values of another simulation point.
    void add(const Counts& other);

    SampleDatabase samples;
    Hotlists hotlists;
    Breakdown contexts, objects, threads;
};

}  // namespace assay::collector
