// The names in profiles by number, each once. There can be millions, most of them new: they cost no
// allocation each, and are not looked at again when the table grows.
#pragma once

#include "framework/events/series.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

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

// The series of several events files: those that add up become one, others stand side by side, with
// the name of the file that they come from.

class MergedSeries {
  public:
    // The series of another file. Throws Error if a sum exceeds 64 bits.
    void add(const std::string& path, std::span<const events::Series> series);
    // After the last one: says where series are from that are not of all files.
    void finish();

    // At most events::kMostSeries.
    const std::vector<events::Series>& series() const { return series_; }
    // How many more there would be.
    std::size_t left_out() const { return left_out_; }

  private:
    std::size_t files_ = 0, left_out_ = 0;
    std::vector<events::Series> series_;
    std::vector<std::vector<std::string>> paths_;  // that each is the sum of
};

}  // namespace assay
