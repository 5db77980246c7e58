// The names in profiles by number, each once. There can be millions, most of them new: they cost no
// allocation each, and are not looked at again when the table grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

}  // namespace assay
