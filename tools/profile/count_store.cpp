#include "tools/profile/count_store.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <utility>

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
    // Multiplicative hashing (Knuth, The Art of Computer Programming, section 6.4), then linear
    // probing. Files count neighbouring lines together, so the hash takes groups of 16 keys, which
    // share a cache line.
    const std::size_t mask = slots_.size() - 1;
    const std::uint64_t product = (key >> 4) * 0x9E37'79B9'7F4A'7C15ULL;
    std::size_t slot = ((product >> 28) << 4 | (key & 15)) & mask;
    while (slots_[slot] != 0 && keys_[slots_[slot] - 1] != key) slot = (slot + 1) & mask;
    return slot;
}

namespace {

std::uint32_t hash_of(std::string_view text) {
    return static_cast<std::uint32_t>(std::hash<std::string_view>()(text));
}

}  // namespace

Strings::Id Strings::id(std::string_view text) {
    if (texts_.size() * 2 >= slots_.size()) grow();
    const std::uint32_t hash = hash_of(text);
    Slot& slot = slots_[slot_of(text, hash)];
    if (slot.number == 0) {
        bytes_ += text.size() + sizeof(std::string_view);
        if (bytes_ > kMostBytes)
            throw Error(
                fmt::format("the names in the profile take more than {} bytes, which the names of "
                            "no program do",
                            kMostBytes));
        texts_.push_back(keep(text));
        slot = {hash, static_cast<std::uint32_t>(texts_.size())};
    }
    return slot.number - 1;
}

std::optional<Strings::Id> Strings::find(std::string_view text) const {
    if (slots_.empty()) return std::nullopt;
    const Slot& slot = slots_[slot_of(text, hash_of(text))];
    return slot.number == 0 ? std::nullopt : std::optional(slot.number - 1);
}

std::size_t Strings::slot_of(std::string_view text, std::uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].number != 0 &&
           (slots_[at].hash != hash || texts_[slots_[at].number - 1] != text))
        at = (at + 1) & mask;
    return at;
}

void Strings::grow() {
    const std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(64, slots_.size() * 2)));
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
        if (slot.number == 0) continue;
        std::size_t at = slot.hash & mask;
        while (slots_[at].number != 0) at = (at + 1) & mask;
        slots_[at] = slot;
    }
}

std::string_view Strings::keep(std::string_view text) {
    if (text.empty()) return {};
    if (text.size() > left_) {
        left_ = std::max(kBlockBytes, text.size());
        blocks_.push_back(std::make_unique_for_overwrite<char[]>(left_));
        block_size_ = left_;
    }
    char* const begin = &blocks_.back()[block_size_ - left_];
    std::copy(text.begin(), text.end(), begin);
    left_ -= text.size();
    return {begin, text.size()};
}

}  // namespace assay
