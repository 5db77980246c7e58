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

    explicit SampleDatabase(std::size_t columns);

    void add(const Key& key, std::size_t column, std::uint64_t weight);

    std::size_t rows() const { return keys_.size(); }
    const Key& key(std::size_t row) const { return keys_[row]; }
    std::span<const std::uint64_t> counts(std::size_t row) const { return {cell(row), columns_}; }

  private:
    static constexpr std::uint32_t kEmpty = UINT32_MAX;
    static constexpr std::size_t kRowsPerChunk = 4096;

    std::uint64_t* cell(std::size_t row) const {
        return chunks_[row / kRowsPerChunk].get() + row % kRowsPerChunk * columns_;
    }
    std::uint32_t find_or_insert(const Key& key);
    // The slot where the key's row is, or belongs.
    std::size_t slot_of(const Key& key) const;
    void grow();

    std::size_t columns_;
    std::vector<Key> keys_;
    // Chunks instead of one vector: growing never copies counts nor doubles their memory.
    std::vector<std::unique_ptr<std::uint64_t[]>> chunks_;
    std::vector<std::uint32_t> slots_;  // rows by hash: open addressing, a power of two
    std::uint32_t last_ = kEmpty;       // the row of the last call
};

}  // namespace assay::collector
