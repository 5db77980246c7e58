// Counts by instruction, and by calling context, object and thread.
#pragma once

#include "framework/collector/results/sampling.h"
#include "framework/collector/trace/contexts.h"
#include "framework/events/series.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace assay::collector {

// Counts by instruction address: one row per address and mapping, one column per event of all
// profilers. About 100 bytes per row at nine events.
class SampleDatabase {
  public:
    struct Key {
        std::uint64_t pc;
        std::uint32_t mapping;  // AddressMap's index, or kNoMapping
        bool operator==(const Key&) const = default;
    };
    struct Row {
        Key key;
        std::uint32_t number;  // for counts()
    };

    explicit SampleDatabase(std::size_t columns);
    SampleDatabase(SampleDatabase&&) = default;

    // Returns the row.
    std::uint32_t add(const Key& key, std::size_t column, std::uint64_t weight);

    // Returns the row of the instruction, or kNoRow.
    static constexpr std::uint32_t kNoRow = UINT32_MAX;
    std::uint32_t find(const Key& key) const;

    std::size_t rows() const { return links_.size(); }
    std::size_t columns() const { return columns_; }
    std::span<const std::uint64_t> counts(std::size_t row) const { return {cell(row), columns_}; }
    // Calls `change(counts)` for each row, in the order of visit_sorted(). This order does not
    // depend on the order of translation.
    template <typename Change>
    void change_rows(const Change& change) {
        visit_sorted([&](const Row& row) {
            change(std::span<std::uint64_t>{cell(row.number), columns_});
        });
    }
    // Calls `visit` for all rows, by mapping, then by address.
    template <typename Visit>
    void visit_sorted(const Visit& visit) const {
        for (const std::uint32_t index : sorted_places()) {
            const Place& place = places_[index];
            for (std::uint32_t row = place.row; row != kEmpty; row = links_[row].next)
                visit(Row{{place.key.pc + links_[row].byte, place.key.mapping}, row});
        }
    }

  private:
    static constexpr std::uint32_t kEmpty = UINT32_MAX;
    static constexpr std::size_t kRowsPerChunk = 4096;
    static constexpr std::uint64_t kPlaceBytes = 64;

    // A stretch of code. Its instructions are found together, so there are far fewer places than
    // rows to hash and to sort.
    struct Place {
        Key key;            // of the first byte
        std::uint32_t row;  // the first row; the rows are linked by address
    };
    struct Link {
        std::uint32_t next;  // row of the same place, or kEmpty
        std::uint32_t byte;  // offset in the place
    };

    std::uint64_t* cell(std::size_t row) const {
        return chunks_[row / kRowsPerChunk].get() + row % kRowsPerChunk * columns_;
    }
    std::vector<std::uint32_t> sorted_places() const;
    std::uint32_t place_of(const Key& first_byte);
    std::uint32_t row_of(Place& place, std::uint32_t byte);
    // Returns the slot of the place, or the free slot where it belongs.
    std::size_t slot_of(const Key& first_byte) const;
    void grow();

    std::size_t columns_;
    // Chunks instead of one vector: growing never copies counts, and never doubles their memory.
    std::vector<std::unique_ptr<std::uint64_t[]>> chunks_;
    std::vector<Place> places_;
    std::vector<Link> links_;           // by row
    std::vector<std::uint32_t> slots_;  // places by hash: open addressing, a power of two
    // Result of the last call: the next call is mostly about the same instruction or a neighbour.
    std::uint32_t last_place_ = kEmpty, last_row_ = kEmpty;
};

// The most frequent values of a stream, in bounded memory. This is the Space-Saving algorithm
// (Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data
// streams", ICDT 2005), with weights.
//
// There are kTracked counters. A value without a counter takes over the one with the least count,
// and that count becomes its possible error. Two bounds follow. A value was seen at least as often
// as its count minus its error. The upper bound is this number plus the least count, which is at
// most the total divided by kTracked.
class TopValues {
  public:
    static constexpr std::size_t kTracked = 64;

    void add(std::uint64_t value, std::uint64_t weight);
    // Adds values that another list has dropped. Each of them was seen at most `error`
    // times.
    void add_rest(std::uint64_t weight, std::uint64_t error);
    // Multiplies all counts by `factor`, at least 1. Must be the last change.
    void scale(double factor);
    // Returns a list without a name.
    events::Hotlist list() const;

  private:
    struct Counter {
        std::uint64_t value, count, error;
    };
    // Roughly the most recently added first, because a frequent value is then found early.
    std::vector<Counter> counters_;
    bool full_ = false;  // true if a value has lost its counter
    std::uint64_t total_ = 0, rest_error_ = 0;
};

// The most frequent values by row of the sample database and by list.
class Hotlists {
  public:
    // `list` is a number among the lists of all profilers.
    TopValues& of(std::uint32_t row, std::uint32_t list) { return rows_[row][list]; }
    bool empty() const { return rows_.empty(); }
    // Calls `visit(row, list, values)` for each list.
    template <typename Visit>
    void for_each(const Visit& visit) const {
        for (const auto& [row, lists] : rows_)
            for (const auto& [number, values] : lists) visit(row, number, values);
    }
    // Returns the lists of the row. `names` are by number of the list; a list named "" is left out.
    std::vector<events::Hotlist> named(std::uint32_t row,
                                       const std::vector<std::string>& names) const;

    // Multiplies all counts by `factor`.
    void scale(double factor) {
        for (auto& [row, lists] : rows_)
            for (auto& [number, values] : lists) values.scale(factor);
    }

  private:
    std::unordered_map<std::uint32_t, std::unordered_map<std::uint32_t, TopValues>> rows_;
};

// Counts by group and instruction: one column per event of all profilers. Groups have numbers.
// Contexts have those of the ContextTree, objects those of MemoryObjects, threads those of
// ThreadContexts::number(), types those of their nodes.
//
// There can be as many rows as groups times instructions. Most rows have one or two counts other
// than 0, and only these take memory. A row takes about 50 bytes.
class GroupCounts {
  public:
    // Row that stands for all instructions of a group.
    static constexpr std::uint32_t kAnyRow = UINT32_MAX;
    // Beyond this many rows, new counts go to the kAnyRow of their group.
    static constexpr std::size_t kMostRows = 12 * 1024 * 1024;

    struct Row {
        std::uint32_t group;
        std::uint32_t instruction;  // the sample database's row, or kAnyRow
        std::uint32_t number;       // for each_count()
    };

    explicit GroupCounts(std::size_t most = kMostRows) : most_(most), slots_(1024) {}

    void add(std::uint32_t group, std::uint32_t instruction, std::size_t column,
             std::uint64_t weight);
    // Calls `visit(column, count)` for the columns of the row that have counts.
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
    // Returns the rows by group, then by instruction. Valid until the next add().
    std::vector<Row> sorted_rows() const;

  private:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Slot : Row {
        Slot() : Row{0, 0, kNone} {}  // a free slot
    };
    struct Cell {
        std::uint64_t count;
        std::uint32_t next;  // the next cell of the row
        std::uint32_t column;
    };

    // Returns the slot of the row; adds the row if it is new.
    std::size_t slot_for(std::uint32_t group, std::uint32_t instruction);
    std::size_t slot_of(std::uint32_t group, std::uint32_t instruction) const;
    void grow();

    std::size_t most_;
    std::size_t rows_ = 0;
    std::vector<Slot> slots_;  // rows by hash: open addressing, a power of two
    std::deque<Cell> cells_;   // a row has at least one; its number is that of its last cell
};

// Counts broken down by groups of one kind.
struct Breakdown {
    static constexpr std::uint32_t kNoGroup = ContextTree::kNone;

    // Called when a profiler says that a count of an instruction belongs to `group`, or to
    // kNoGroup.
    void tell(std::uint32_t group, std::uint32_t row, std::size_t column, std::uint64_t weight);

    std::size_t columns;
    // True if counts without a group from a profiler are divided among the groups.
    bool divides = false;
    GroupCounts counts = GroupCounts();
    // By row of the samples and column: the part of the count for which a profiler has given a
    // group or kNoGroup. Only if `divides`.
    std::vector<std::uint64_t> told = {};
};

struct Counts {
    explicit Counts(std::size_t columns)
        : samples(columns), contexts{columns}, objects{columns}, threads{columns} {}

    // Returns by row of the samples and column the part of the count for which no profiler has
    // given a group; 0 in columns that are not divided.
    std::vector<std::uint64_t> untold(const Breakdown& breakdown,
                                      const std::vector<bool>& divided_columns) const;
    // Turns counts of bursts into estimates for the whole run.
    void scale(const Sampling& sampling, const std::vector<bool>& unscaled_columns);
    // Adds the samples and values of another simulation point.
    void add(const Counts& other);

    SampleDatabase samples;
    Hotlists hotlists;
    Breakdown contexts, objects, threads;
};

}  // namespace assay::collector
