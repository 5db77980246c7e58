#include "framework/collector/sample_database.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace assay::collector {
namespace {

// The multiplier of splitmix64's finaliser (Steele, Lea, Flood 2014).
std::size_t hash(const SampleDatabase::Key& key) {
    std::uint64_t h = (key.pc + key.mapping) * 0xBF58476D1CE4E5B9ULL;
    return h ^ (h >> 31);
}

}  // namespace

SampleDatabase::Place::Place(const Key& first_byte) : key(first_byte) {
    std::fill(std::begin(rows), std::end(rows), kEmpty);
}

SampleDatabase::SampleDatabase(std::size_t columns) : columns_(columns), slots_(1024, kEmpty) {}

void SampleDatabase::add(const Key& key, std::size_t column, std::uint64_t weight) {
    const std::uint64_t byte = key.pc % kPlaceBytes;
    const Key first_byte{key.pc - byte, key.mapping};
    // Profilers emit the events of one instruction, and those of neighbours, together.
    if (last_ == kEmpty || places_[last_].key != first_byte) last_ = place_of(first_byte);
    std::uint32_t& row = places_[last_].rows[byte];
    if (row == kEmpty) {
        row = static_cast<std::uint32_t>(rows_++);
        if (row % kRowsPerChunk == 0)
            chunks_.push_back(std::make_unique<std::uint64_t[]>(kRowsPerChunk * columns_));
    }
    cell(row)[column] += weight;
}

std::vector<SampleDatabase::Row> SampleDatabase::sorted_rows() const {
    std::vector<std::uint32_t> order(places_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto position = [this](std::uint32_t place) {
        return std::pair(places_[place].key.mapping, places_[place].key.pc);
    };
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return position(a) < position(b); });
    std::vector<Row> sorted;
    sorted.reserve(rows_);
    for (const std::uint32_t index : order) {
        const Place& place = places_[index];
        for (std::uint64_t byte = 0; byte < kPlaceBytes; ++byte)
            if (place.rows[byte] != kEmpty)
                sorted.push_back({{place.key.pc + byte, place.key.mapping}, place.rows[byte]});
    }
    return sorted;
}

std::uint32_t SampleDatabase::place_of(const Key& first_byte) {
    std::size_t slot = slot_of(first_byte);
    if (slots_[slot] != kEmpty) return slots_[slot];
    if ((places_.size() + 1) * 4 > slots_.size() * 3) {
        grow();
        slot = slot_of(first_byte);
    }
    slots_[slot] = static_cast<std::uint32_t>(places_.size());
    places_.emplace_back(first_byte);
    return slots_[slot];
}

std::size_t SampleDatabase::slot_of(const Key& first_byte) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash(first_byte) & mask;
    while (slots_[slot] != kEmpty && places_[slots_[slot]].key != first_byte)
        slot = (slot + 1) & mask;
    return slot;
}

void SampleDatabase::grow() {
    slots_.assign(slots_.size() * 2, kEmpty);
    for (std::uint32_t place = 0; place < places_.size(); ++place)
        slots_[slot_of(places_[place].key)] = place;
}

}  // namespace assay::collector
