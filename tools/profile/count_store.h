// How profiles keep millions of counts and names: rows of counts, packed, because most counts are
// small or zero; rows that are found by a key; and names by number, each once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace assay {

// One per event. Those of a difference are two's complement: see events::Header::difference.
using Counts = std::span<const std::uint64_t>;

// Adds to a sum that may have no columns yet.
inline void add_counts(std::vector<std::uint64_t>& sum, Counts counts) {
    if (sum.size() < counts.size()) sum.resize(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
}

// Whether any of them is not 0.
inline bool any_count(Counts counts) {
    return std::any_of(counts.begin(), counts.end(),
                       [](std::uint64_t count) { return count != 0; });
}

// How much a command keeps of the names in profiles, and how much of their counts, each for another
// place: more than any program has. A file that has more is made to use up memory, such as a small
// compressed one that stands for terabytes.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 31;

// Each count in groups of seven bits (LEB128), in blocks that never move.
class CountStore {
  public:
    using Row = std::uint64_t;  // where it begins

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
    std::size_t used_ = kBlockBytes;  // of the last block
    std::vector<std::unique_ptr<std::uint8_t[]>> blocks_;
};

// Rows of counts, found by a 64-bit key: an open hash table over blocks of rows that never move,
// so that millions of rows cost neither an allocation each nor a copy of them all. Not packed, as
// those of CountStore are: what is added to in any order.

class CountTable {
  public:
    void set_columns(std::size_t columns) { columns_ = columns; }
    std::size_t columns() const { return columns_; }
    std::size_t size() const { return keys_.size(); }
    std::uint64_t key(std::size_t row) const { return keys_[row]; }
    Counts counts(std::size_t row) const { return {row_start(row), columns_}; }
    // The row of that key, which is made if there is none. Throws Error if that takes more than
    // kMostBytes.
    std::size_t row(std::uint64_t key);
    // Empty if there is no row of that key.
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
    std::vector<std::uint32_t> slots_;  // row + 1, or 0; a power of two of them
    std::vector<std::uint64_t> keys_;
    std::vector<std::unique_ptr<std::uint64_t[]>> blocks_;
};

// The names in profiles by number, each once. There can be millions, most of them new: they cost no
// allocation each, and are not looked at again when the table grows.

class Strings {
  public:
    using Id = std::uint32_t;  // in the order in which they came, from 0

    // Throws Error if they take more than kMostBytes (count_store.h) together.
    Id id(std::string_view text);
    // Valid as long as this object.
    std::string_view operator[](Id id) const { return texts_[id]; }
    std::size_t size() const { return texts_.size(); }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{1} << 18;
    struct Slot {
        std::uint32_t hash = 0, number = 0;  // of the text: its id and 1; 0 if the slot is free
    };

    // Where the text is, or belongs.
    Slot& slot_of(std::string_view text, std::uint32_t hash);
    void grow();
    std::string_view keep(std::string_view text);

    std::vector<std::string_view> texts_;
    std::vector<Slot> slots_;  // a power of two of them
    std::vector<std::unique_ptr<char[]>> blocks_;
    std::size_t block_size_ = 0, left_ = 0;  // of the last block
    std::size_t bytes_ = 0;
};

}  // namespace assay
