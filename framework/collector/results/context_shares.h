// What calling contexts have of counts that no profiler has told a context of.
//
// A count to which each execution of an instruction has added the same, as of instructions, or of
// data references, is a multiple of the executions: each context has as many of it as it has
// executions. Where executions differ by themselves, as those of repeated string instructions, only
// a count that is equal to them is taken for such. A count of mispredicted branches is a multiple
// of the mispredictions. Any other stays in no context.
#pragma once

#include "framework/collector/results/sample_database.h"
#include "framework/collector/trace/segment.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::collector {

// Counts by calling context and instruction: one column per event of all profilers.
//
// There can be as many rows as contexts times instructions, and most have one or two counts that
// are not 0: only these take room. About 50 bytes for a row.

class ContextCounts {
  public:
    // Stands for all instructions of a context.
    static constexpr std::uint32_t kAnyRow = UINT32_MAX;
    // Beyond this many rows, what is new counts for its context as a whole.
    static constexpr std::size_t kMostRows = 12 * 1024 * 1024;

    struct Row {
        std::uint32_t context;
        std::uint32_t instruction;  // the sample database's row, or kAnyRow
        std::uint32_t number;       // for each_count()
    };

    explicit ContextCounts(std::size_t most = kMostRows) : most_(most), slots_(1024) {}

    void add(std::uint32_t context, std::uint32_t instruction, std::size_t column,
             std::uint64_t weight) {
        if (weight == 0) return;
        Row& row = slots_[slot_for(context, instruction)];
        for (std::uint32_t cell = row.number; cell != kNone; cell = cells_[cell].next)
            if (cells_[cell].column == column) {
                cells_[cell].count += weight;
                return;
            }
        cells_.push_back({weight, row.number, static_cast<std::uint32_t>(column)});
        row.number = static_cast<std::uint32_t>(cells_.size() - 1);
    }
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
    // By context, then by instruction. Valid until the next add().
    std::vector<Row> sorted_rows() const {
        std::vector<Row> sorted;
        sorted.reserve(rows_);
        for (const Row& row : slots_)
            if (row.number != kNone) sorted.push_back(row);
        std::sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
            return std::tie(a.context, a.instruction) < std::tie(b.context, b.instruction);
        });
        return sorted;
    }

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
    std::size_t slot_for(std::uint32_t context, std::uint32_t instruction) {
        std::size_t slot = slot_of(context, instruction);
        if (slots_[slot].number != kNone) return slot;
        if (rows_ >= most_ && instruction != kAnyRow) return slot_for(context, kAnyRow);
        if ((rows_ + 1) * 4 > slots_.size() * 3) {
            grow();
            slot = slot_of(context, instruction);
        }
        ++rows_;
        slots_[slot].context = context;
        slots_[slot].instruction = instruction;
        return slot;
    }
    void grow() {
        std::vector<Slot> before(slots_.size() * 2);
        before.swap(slots_);
        for (const Slot& row : before)
            if (row.number != kNone) slots_[slot_of(row.context, row.instruction)] = row;
    }
    std::size_t slot_of(std::uint32_t context, std::uint32_t instruction) const {
        // The multiplier of splitmix64's finaliser (Steele, Lea, Flood 2014).
        const std::uint64_t hash =
            (std::uint64_t{context} << 32 | instruction) * std::uint64_t{0x94D049BB133111EB};
        const std::size_t mask = slots_.size() - 1;
        std::size_t slot = (hash ^ hash >> 32) & mask;
        while (slots_[slot].number != kNone &&
               (slots_[slot].context != context || slots_[slot].instruction != instruction))
            slot = (slot + 1) & mask;
        return slot;
    }

    std::size_t most_;
    std::size_t rows_ = 0;
    std::vector<Slot> slots_;  // rows by hash: open addressing, a power of two
    std::deque<Cell> cells_;   // a row has at least one; its number is that of the last
};

// How often instructions that follow one another in a block have been executed in a context. There
// can be several of a context and a block, of all or a part of its instructions; they add up.
struct ContextExecutions {
    std::uint32_t context;
    std::uint32_t first_instr, instr_count;
    std::uint64_t executions;
    std::uint64_t mispredictions;  // of the last one
};

class ContextShares {
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
    ContextShares(Instructions instructions, std::span<const std::uint64_t> counts,
                  std::size_t columns, std::span<const std::uint32_t> alike);

    // Adds what they have. Quickest with those of one context one behind the other.
    void add(std::span<const ContextExecutions> all, ContextCounts& to);

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
    void flush(ContextCounts& to);
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

}  // namespace assay::collector
