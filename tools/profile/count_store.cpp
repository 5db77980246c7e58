#include "tools/profile/count_store.h"

namespace assay {

CountStore::Row CountStore::append(Counts counts) {
    constexpr std::size_t kMostBytesOfACount = 10;
    if (kBlockBytes - used_ < kMostBytesOfACount * columns_) {
        blocks_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(kBlockBytes));
        used_ = 0;
    }
    const Row row = (blocks_.size() - 1) * kBlockBytes + used_;
    std::uint8_t* const block = blocks_.back().get();
    for (std::uint64_t count : counts) {
        for (; count >= 0x80; count >>= 7) block[used_++] = static_cast<std::uint8_t>(count | 0x80);
        block[used_++] = static_cast<std::uint8_t>(count);
    }
    return row;
}

template <typename Function>
void CountStore::for_each_count(Row row, const Function& function) const {
    const std::uint8_t* at = &blocks_[row / kBlockBytes][row % kBlockBytes];
    for (std::size_t i = 0; i < columns_; ++i) {
        std::uint64_t count = *at & 0x7f;
        for (unsigned shift = 7; *at++ & 0x80; shift += 7)
            count |= std::uint64_t{*at & 0x7fU} << shift;
        function(i, count);
    }
}

void CountStore::read(Row row, std::span<std::uint64_t> counts) const {
    for_each_count(row, [&](std::size_t i, std::uint64_t count) { counts[i] = count; });
}

void CountStore::add_to(std::span<std::uint64_t> counts, Row row) const {
    for_each_count(row, [&](std::size_t i, std::uint64_t count) { counts[i] += count; });
}

}  // namespace assay
