#include "framework/collector/results/sample_database.h"

#include <algorithm>
#include <cmath>
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

SampleDatabase::SampleDatabase(std::size_t columns) : columns_(columns), slots_(1024, kEmpty) {}

std::uint32_t SampleDatabase::add(const Key& key, std::size_t column, std::uint64_t weight) {
    const auto byte = static_cast<std::uint32_t>(key.pc % kPlaceBytes);
    const Key first_byte{key.pc - byte, key.mapping};
    if (last_place_ == kEmpty || places_[last_place_].key != first_byte) {
        last_place_ = place_of(first_byte);
        last_row_ = kEmpty;
    }
    last_row_ = row_of(places_[last_place_], byte);
    cell(last_row_)[column] += weight;
    return last_row_;
}

std::uint32_t SampleDatabase::find(const Key& key) const {
    const auto byte = static_cast<std::uint32_t>(key.pc % kPlaceBytes);
    const std::uint32_t place = slots_[slot_of({key.pc - byte, key.mapping})];
    std::uint32_t row = place == kEmpty ? kEmpty : places_[place].row;
    while (row != kEmpty && links_[row].byte < byte) row = links_[row].next;
    return row != kEmpty && links_[row].byte == byte ? row : kNoRow;
}

std::uint32_t SampleDatabase::row_of(Place& place, std::uint32_t byte) {
    std::uint32_t before = kEmpty, row = place.row;
    if (last_row_ != kEmpty && links_[last_row_].byte <= byte) row = last_row_;
    for (; row != kEmpty && links_[row].byte < byte; row = links_[row].next) before = row;
    if (row != kEmpty && links_[row].byte == byte) return row;
    const auto added = static_cast<std::uint32_t>(links_.size());
    links_.push_back({row, byte});
    (before == kEmpty ? place.row : links_[before].next) = added;
    if (added % kRowsPerChunk == 0)
        chunks_.push_back(std::make_unique<std::uint64_t[]>(kRowsPerChunk * columns_));
    return added;
}

std::vector<std::uint32_t> SampleDatabase::sorted_places() const {
    std::vector<std::uint32_t> order(places_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto position = [this](std::uint32_t place) {
        return std::pair(places_[place].key.mapping, places_[place].key.pc);
    };
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return position(a) < position(b); });
    return order;
}

std::uint32_t SampleDatabase::place_of(const Key& first_byte) {
    std::size_t slot = slot_of(first_byte);
    if (slots_[slot] != kEmpty) return slots_[slot];
    if ((places_.size() + 1) * 4 > slots_.size() * 3) {
        grow();
        slot = slot_of(first_byte);
    }
    slots_[slot] = static_cast<std::uint32_t>(places_.size());
    places_.push_back({first_byte, kEmpty});
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

namespace {

constexpr auto kByCount = [](const auto& a, const auto& b) { return a.count < b.count; };

}  // namespace

void TopValues::add(std::uint64_t value, std::uint64_t weight) {
    if (weight == 0) return;
    total_ += weight;
    auto counter = std::find_if(counters_.begin(), counters_.end(),
                                [&](const Counter& each) { return each.value == value; });
    if (counter == counters_.end() && counters_.size() < kTracked) {
        counters_.push_back({value, weight, 0});
        return;
    }
    if (counter == counters_.end()) {
        counter = std::min_element(counters_.begin(), counters_.end(), kByCount);
        *counter = {value, counter->count, counter->count};
        full_ = true;
    }
    counter->count += weight;
    if (counter != counters_.begin()) std::iter_swap(counter, counter - 1);
}

void TopValues::add_rest(std::uint64_t weight, std::uint64_t error) {
    total_ += weight;
    rest_error_ += std::min(error, weight);
}

// Rounded so that the values are no more than their total.
void TopValues::scale(double factor) {
    const events::Hotlist known = list();
    const auto scaled = [factor](std::uint64_t count) {
        return static_cast<double>(count) * factor;
    };
    counters_.clear();
    full_ = false;
    for (const events::HotValue& each : known.values)
        counters_.push_back({each.value, static_cast<std::uint64_t>(scaled(each.count)), 0});
    rest_error_ = static_cast<std::uint64_t>(std::ceil(scaled(known.error)));
    total_ = static_cast<std::uint64_t>(std::ceil(scaled(known.total)));
}

events::Hotlist TopValues::list() const {
    events::Hotlist list;
    list.total = total_;
    list.error = rest_error_;
    if (full_) list.error += std::min_element(counters_.begin(), counters_.end(), kByCount)->count;
    for (const Counter& each : counters_)
        if (each.count > each.error) list.values.push_back({each.value, each.count - each.error});
    events::sort_by_count(list.values);
    return list;
}

std::vector<events::Hotlist> Hotlists::named(std::uint32_t row,
                                             const std::vector<std::string>& names) const {
    std::vector<events::Hotlist> lists;
    const auto found = rows_.find(row);
    if (found == rows_.end()) return lists;
    for (std::uint32_t list = 0; list < names.size(); ++list) {
        const auto values = found->second.find(list);
        if (names[list].empty() || values == found->second.end()) continue;
        lists.push_back(values->second.list());
        lists.back().name = names[list];
    }
    return lists;
}

}  // namespace assay::collector
