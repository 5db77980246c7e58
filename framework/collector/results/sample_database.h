// Counts by instruction address: one row per address and mapping, one column per event of all
// profilers. About 100 bytes per row at nine events.
//
// Also the lists of values that profilers keep for instructions.
#pragma once

#include "framework/events/series.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::collector {

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

    // The row of the instruction; kNoRow if it has none.
    static constexpr std::uint32_t kNoRow = UINT32_MAX;
    std::uint32_t find(const Key& key) const;

    std::size_t rows() const { return links_.size(); }
    std::size_t columns() const { return columns_; }
    std::span<const std::uint64_t> counts(std::size_t row) const { return {cell(row), columns_}; }
    // Calls `change(counts)` of each row, in the order of visit_sorted(): it does not depend on
    // what was translated when.
    template <typename Change>
    void change_rows(const Change& change) {
        visit_sorted([&](const Row& row) {
            change(std::span<std::uint64_t>{cell(row.number), columns_});
        });
    }
    // All of them, by mapping, then by address.
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

    // A stretch of code: its instructions are found together, so that hashing and sorting deal
    // with a small part of as many things as there are rows.
    struct Place {
        Key key;            // of its first byte
        std::uint32_t row;  // the first; each leads to the next, by address
    };
    struct Link {
        std::uint32_t next;  // row of the same place, or kEmpty
        std::uint32_t byte;  // in the place
    };

    std::uint64_t* cell(std::size_t row) const {
        return chunks_[row / kRowsPerChunk].get() + row % kRowsPerChunk * columns_;
    }
    std::vector<std::uint32_t> sorted_places() const;
    std::uint32_t place_of(const Key& first_byte);
    std::uint32_t row_of(Place& place, std::uint32_t byte);
    // The slot where the place is, or belongs.
    std::size_t slot_of(const Key& first_byte) const;
    void grow();

    std::size_t columns_;
    // Chunks instead of one vector: growing never copies counts nor doubles their memory.
    std::vector<std::unique_ptr<std::uint64_t[]>> chunks_;
    std::vector<Place> places_;
    std::vector<Link> links_;           // by row
    std::vector<std::uint32_t> slots_;  // places by hash: open addressing, a power of two
    // Of the last call: the next one mostly is about the same instruction or its neighbour.
    std::uint32_t last_place_ = kEmpty, last_row_ = kEmpty;
};

// The values that profilers have returned: the most frequent ones, by the row of the sample
// database and by list.

// The most frequent values of a stream, in bounded memory: the Space-Saving algorithm (Metwally,
// Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams",
// ICDT 2005), with weights.
//
// There are kTracked counters. A value that has none takes over the one with the least count, and
// that count as its own possible error. So what a counter has beyond its error is no more than how
// often its value was seen; and no value was seen more often than that by more than the least
// count, which is at most the total divided by kTracked.
class TopValues {
  public:
    static constexpr std::size_t kTracked = 64;

    void add(std::uint64_t value, std::uint64_t weight);
    // Values seen that nobody knows any more; none of them can be one value more than `error`
    // times.
    void add_rest(std::uint64_t weight, std::uint64_t error);
    // All were seen `factor` times as often: at least 1. The last thing to be done with them.
    void scale(double factor);
    // The list has no name.
    events::Hotlist list() const;

  private:
    struct Counter {
        std::uint64_t value, count, error;
    };
    // The most recently added first, nearly: what is frequent is found early.
    std::vector<Counter> counters_;
    bool full_ = false;  // some value has lost its counter
    std::uint64_t total_ = 0, rest_error_ = 0;
};

// By the row of the sample database and by list.
class Hotlists {
  public:
    // `list` is a number that all profilers' lists have together.
    TopValues& of(std::uint32_t row, std::uint32_t list) { return rows_[row][list]; }
    bool empty() const { return rows_.empty(); }
    // Calls `visit(row, list, values)` of each.
    template <typename Visit>
    void for_each(const Visit& visit) const {
        for (const auto& [row, lists] : rows_)
            for (const auto& [number, values] : lists) visit(row, number, values);
    }
    // The row's lists that have a name in `names`, by their number; "" leaves a list out.
    std::vector<events::Hotlist> named(std::uint32_t row,
                                       const std::vector<std::string>& names) const;

    // All values were seen `factor` times as often.
    void scale(double factor) {
        for (auto& [row, lists] : rows_)
            for (auto& [number, values] : lists) values.scale(factor);
    }

  private:
    std::unordered_map<std::uint32_t, std::unordered_map<std::uint32_t, TopValues>> rows_;
};

}  // namespace assay::collector
