#include "framework/collector/results/counts.h"

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

// Rounds so that the sum of the values is at most their total.
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

void GroupCounts::add(std::uint32_t group, std::uint32_t instruction, std::size_t column,
                      std::uint64_t weight) {
    if (weight == 0) return;
    Row& row = slots_[slot_for(group, instruction)];
    for (std::uint32_t cell = row.number; cell != kNone; cell = cells_[cell].next)
        if (cells_[cell].column == column) {
            cells_[cell].count += weight;
            return;
        }
    cells_.push_back({weight, row.number, static_cast<std::uint32_t>(column)});
    row.number = static_cast<std::uint32_t>(cells_.size() - 1);
}

std::vector<GroupCounts::Row> GroupCounts::sorted_rows() const {
    std::vector<Row> sorted;
    sorted.reserve(rows_);
    for (const Row& row : slots_)
        if (row.number != kNone) sorted.push_back(row);
    std::sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
        return std::tie(a.group, a.instruction) < std::tie(b.group, b.instruction);
    });
    return sorted;
}

std::size_t GroupCounts::slot_for(std::uint32_t group, std::uint32_t instruction) {
    std::size_t slot = slot_of(group, instruction);
    if (slots_[slot].number != kNone) return slot;
    if (rows_ >= most_ && instruction != kAnyRow) return slot_for(group, kAnyRow);
    if ((rows_ + 1) * 4 > slots_.size() * 3) {
        grow();
        slot = slot_of(group, instruction);
    }
    ++rows_;
    slots_[slot].group = group;
    slots_[slot].instruction = instruction;
    return slot;
}

std::size_t GroupCounts::slot_of(std::uint32_t group, std::uint32_t instruction) const {
    // The multiplier of splitmix64's finaliser (Steele, Lea, Flood 2014).
    const std::uint64_t hash =
        (std::uint64_t{group} << 32 | instruction) * std::uint64_t{0x94D049BB133111EB};
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (hash ^ hash >> 32) & mask;
    while (slots_[slot].number != kNone &&
           (slots_[slot].group != group || slots_[slot].instruction != instruction))
        slot = (slot + 1) & mask;
    return slot;
}

void GroupCounts::grow() {
    std::vector<Slot> before(slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& row : before)
        if (row.number != kNone) slots_[slot_of(row.group, row.instruction)] = row;
}

void Breakdown::tell(std::uint32_t group, std::uint32_t row, std::size_t column,
                     std::uint64_t weight) {
    if (group != kNoGroup) counts.add(group, row, column, weight);
    if (!divides) return;
    const std::size_t begin = std::size_t{row} * columns, end = begin + columns;
    if (told.size() < end) told.resize(end + end / 2);
    told[begin + column] += weight;
}

std::vector<std::uint64_t> Counts::untold(const Breakdown& breakdown,
                                          const std::vector<bool>& divided_columns) const {
    const std::size_t columns = samples.columns();
    std::vector<std::uint64_t> untold(samples.rows() * columns);
    for (std::size_t i = 0; i < untold.size(); ++i)
        if (divided_columns[i % columns])
            untold[i] = samples.counts(i / columns)[i % columns] -
                        (i < breakdown.told.size() ? breakdown.told[i] : 0);
    return untold;
}

void Counts::scale(const Sampling& sampling, const std::vector<bool>& unscaled_columns) {
    std::uint64_t left = 0;
    samples.change_rows(
        [&](std::span<std::uint64_t> row) { sampling.scale_row(row, unscaled_columns, left); });
    contexts.counts.change_counts([&](std::size_t column, std::uint64_t count) {
        return unscaled_columns[column] ? count : sampling.scaled_part(count);
    });
    hotlists.scale(sampling.factor());
}

// A value that the other hotlist has dropped keeps that list's bound as its error.
void Counts::add(const Counts& other) {
    std::vector<SampleDatabase::Key> keys(other.samples.rows());
    other.samples.visit_sorted([&](const SampleDatabase::Row& row) {
        keys[row.number] = row.key;
        const std::span<const std::uint64_t> counts = other.samples.counts(row.number);
        for (std::size_t column = 0; column < counts.size(); ++column)
            samples.add(row.key, column, counts[column]);
    });
    other.hotlists.for_each([&](std::uint32_t row, std::uint32_t number, const TopValues& values) {
        TopValues& sum = hotlists.of(samples.add(keys[row], 0, 0), number);
        const events::Hotlist list = values.list();
        std::uint64_t known = 0;
        for (const events::HotValue& each : list.values) {
            sum.add(each.value, each.count);
            known += each.count;
        }
        sum.add_rest(list.total - std::min(list.total, known), list.error);
    });
}

}  // namespace assay::collector
