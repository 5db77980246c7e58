// Compact stores for millions of counts and names. CountStore packs counts, because most are small
// or zero. CountTable finds rows by key. Strings numbers the names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace assay {

// One count per event. Counts of a difference are two's complement: see events::Header::difference.
using Counts = std::span<const std::uint64_t>;

// Adds `counts` to a sum, which may have no columns yet.
inline void add_counts(std::vector<std::uint64_t>& sum, Counts counts) {
    if (sum.size() < counts.size()) sum.resize(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
}

inline bool any_count(Counts counts) {
    return std::any_of(counts.begin(), counts.end(),
                       [](std::uint64_t count) { return count != 0; });
}

// Limits of memory for names and for counts, each for one store. No program reaches them. They stop
// files made to use up memory, such as small compressed files that expand to terabytes.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 31;

// Packed rows of counts. Each count takes groups of seven bits (LEB128). Blocks never move.
class CountStore {
  public:
    using Row = std::uint64_t;  // position of the row

    void set_columns(std::size_t columns) { columns_ = columns; }
    std::size_t columns() const { return columns_; }

    Row append(Counts counts);
    // `counts` has as many elements as there are columns.
    void read(Row row, std::span<std::uint64_t> counts) const;
    std::size_t bytes() const { return blocks_.size() * kBlockBytes; }
    // Adds the row to `counts`.
    void add_to(std::span<std::uint64_t> counts, Row row) const;

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

    template <typename Function>
    void for_each_count(Row row, const Function& function) const;

    std::size_t columns_ = 0;
    std::size_t used_ = kBlockBytes;  // used bytes of the last block
    std::vector<std::unique_ptr<std::uint8_t[]>> blocks_;
};

// Rows of counts, found by a 64-bit key. An open hash table refers to blocks of rows that never
// move. Rows are added to in any order, so they are not packed. They need no allocation of their
// own, and growing copies no rows.

class CountTable {
  public:
    void set_columns(std::size_t columns) { columns_ = columns; }
    std::size_t columns() const { return columns_; }
    std::size_t size() const { return keys_.size(); }
    std::uint64_t key(std::size_t row) const { return keys_[row]; }
    Counts counts(std::size_t row) const { return {row_start(row), columns_}; }
    // Returns the row of the key; adds a row of zeros for a new key. Throws Error if the table
    // exceeds kMostBytes.
    std::size_t row(std::uint64_t key);
    // Empty if the key has no row.
    Counts find(std::uint64_t key) const;
    void add_to_row(std::size_t row, Counts counts) {
        std::uint64_t* const sum = row_start(row);
        for (std::size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
    }
    void add(std::uint64_t key, Counts counts) { add_to_row(row(key), counts); }

  private:
    static constexpr std::size_t kBlockRows = 4096;

    void grow();
    void add_block();
    std::size_t slot_of(std::uint64_t key) const;
    std::uint64_t* row_start(std::size_t row) const {
        return &blocks_[row / kBlockRows][row % kBlockRows * columns_];
    }

    std::size_t columns_ = 0;
    std::vector<std::uint32_t> slots_;  // row + 1, or 0 if free; the size is a power of two
    std::vector<std::uint64_t> keys_;
    std::vector<std::unique_ptr<std::uint64_t[]>> blocks_;
};

// Numbers names; equal names get the same number. There can be millions, most of them new. Names
// need no allocation of their own, and growing the table does not read them again.

class Strings {
  public:
    using Id = std::uint32_t;  // numbered from 0 in order of first use

    // Throws Error if all names together exceed kMostBytes.
    Id id(std::string_view text);
    // No value if no text has been given its id.
    std::optional<Id> find(std::string_view text) const;
    // The text is valid as long as this object.
    std::string_view operator[](Id id) const { return texts_[id]; }
    std::size_t size() const { return texts_.size(); }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{1} << 18;
    struct Slot {
        std::uint32_t hash = 0,
                      number = 0;  // hash of the text and its id + 1; 0 if the slot is free
    };

    // The index of the text's slot, or of the free slot for it.
    std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
    void grow();
    std::string_view keep(std::string_view text);

    std::vector<std::string_view> texts_;
    std::vector<Slot> slots_;  // the size is a power of two
    std::vector<std::unique_ptr<char[]>> blocks_;
    std::size_t block_size_ = 0, left_ = 0;  // of the last block
    std::size_t bytes_ = 0;
};

}  // namespace assay
