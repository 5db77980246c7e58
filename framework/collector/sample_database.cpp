#include "framework/collector/sample_database.h"

namespace assay::collector {
namespace {

// The multiplier of splitmix64's finaliser (Steele, Lea, Flood 2014).
std::size_t hash(const SampleDatabase::Key& key) {
    std::uint64_t h = (key.pc + key.mapping) * 0xBF58476D1CE4E5B9ULL;
    return h ^ (h >> 31);
}

}  // namespace

SampleDatabase::SampleDatabase(std::size_t columns) : columns_(columns), slots_(1024, kEmpty) {}

void SampleDatabase::add(const Key& key, std::size_t column, std::uint64_t weight) {
    // Profilers emit the events of one instruction one after the other.
    if (last_ == kEmpty || keys_[last_] != key) last_ = find_or_insert(key);
    cell(last_)[column] += weight;
}

std::uint32_t SampleDatabase::find_or_insert(const Key& key) {
    std::size_t slot = slot_of(key);
    if (slots_[slot] != kEmpty) return slots_[slot];
    if ((keys_.size() + 1) * 4 > slots_.size() * 3) {
        grow();
        slot = slot_of(key);
    }
    if (keys_.size() % kRowsPerChunk == 0)
        chunks_.push_back(std::make_unique<std::uint64_t[]>(kRowsPerChunk * columns_));
    slots_[slot] = static_cast<std::uint32_t>(keys_.size());
    keys_.push_back(key);
    return slots_[slot];
}

std::size_t SampleDatabase::slot_of(const Key& key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash(key) & mask;
    while (slots_[slot] != kEmpty && keys_[slots_[slot]] != key) slot = (slot + 1) & mask;
    return slot;
}

void SampleDatabase::grow() {
    slots_.assign(slots_.size() * 2, kEmpty);
    for (std::uint32_t row = 0; row < keys_.size(); ++row) slots_[slot_of(keys_[row])] = row;
}

}  // namespace assay::collector
