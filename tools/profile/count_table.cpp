#include "tools/profile/count_table.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay {

std::size_t CountTable::row(std::uint64_t key) {
    if (keys_.size() * 2 >= slots_.size()) grow();
    std::uint32_t& slot = slots_[slot_of(key)];
    if (slot == 0) {
        if (keys_.size() % kBlockRows == 0) add_block();
        keys_.push_back(key);
        slot = static_cast<std::uint32_t>(keys_.size());
    }
    return slot - 1;
}

void CountTable::add_block() {
    const std::size_t row_bytes = sizeof(std::uint64_t) * (columns_ + 1);
    if ((blocks_.size() + 1) * kBlockRows * row_bytes > kMostBytes)
        throw Error(
            fmt::format("the profile has more than {} functions, or lines of the files "
                        "shown, which no program has: their counts take more than {} bytes",
                        keys_.size(), kMostBytes));
    blocks_.push_back(std::make_unique<std::uint64_t[]>(kBlockRows * columns_));
}

Counts CountTable::find(std::uint64_t key) const {
    const std::uint32_t slot = slots_.empty() ? 0 : slots_[slot_of(key)];
    return slot == 0 ? Counts() : counts(slot - 1);
}

void CountTable::grow() {
    slots_.assign(std::max<std::size_t>(1024, slots_.size() * 2), 0);
    for (std::size_t row = 0; row < keys_.size(); ++row)
        slots_[slot_of(keys_[row])] = static_cast<std::uint32_t>(row + 1);
}

std::size_t CountTable::slot_of(std::uint64_t key) const {
    // Multiplicative hashing (Knuth, The Art of Computer Programming, section 6.4) of groups of 16
    // neighbouring lines, which files count together: a group shares a cache line. Then linear
    // probing.
    const std::size_t mask = slots_.size() - 1;
    const std::uint64_t product = (key >> 4) * 0x9E37'79B9'7F4A'7C15ULL;
    std::size_t slot = ((product >> 28) << 4 | (key & 15)) & mask;
    while (slots_[slot] != 0 && keys_[slots_[slot] - 1] != key) slot = (slot + 1) & mask;
    return slot;
}

}  // namespace assay
