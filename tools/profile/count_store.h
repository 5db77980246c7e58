// Rows of counts, packed: most counts of a profile are small or zero, and there are millions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace assay {

// One per event. Those of a difference are two's complement: see events::Header::difference.
using Counts = std::span<const std::uint64_t>;

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

}  // namespace assay
