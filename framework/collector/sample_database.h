// Counts by instruction address: one row per address and mapping, one column per event of all
// profilers. About 100 bytes per row at nine events.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
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

    void add(const Key& key, std::size_t column, std::uint64_t weight);

    std::size_t rows() const { return rows_; }
    std::span<const std::uint64_t> counts(std::size_t row) const { return {cell(row), columns_}; }
    // All of them, by mapping, then by address.
    std::vector<Row> sorted_rows() const;

  private:
    static constexpr std::uint32_t kEmpty = UINT32_MAX;
    static constexpr std::size_t kRowsPerChunk = 4096;
    static constexpr std::uint64_t kPlaceBytes = 64;

    // A stretch of code: its instructions are found together, so that hashing and sorting deal
    // with a small part of as many things as there are rows.
    struct Place {
        explicit Place(const Key& first_byte);
        Key key;                          // of its first byte
        std::uint32_t rows[kPlaceBytes];  // by byte; or kEmpty
    };

    std::uint64_t* cell(std::size_t row) const {
        return chunks_[row / kRowsPerChunk].get() + row % kRowsPerChunk * columns_;
    }
    std::uint32_t place_of(const Key& first_byte);
    // The slot where the place is, or belongs.
    std::size_t slot_of(const Key& first_byte) const;
    void grow();

    std::size_t columns_;
    std::size_t rows_ = 0;
    // Chunks instead of one vector: growing never copies counts nor doubles their memory.
    std::vector<std::unique_ptr<std::uint64_t[]>> chunks_;
    std::vector<Place> places_;
    std::vector<std::uint32_t> slots_;  // places by hash: open addressing, a power of two
    std::uint32_t last_ = kEmpty;       // the place of the last call
};

}  // namespace assay::collector
