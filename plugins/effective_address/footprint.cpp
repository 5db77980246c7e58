#include "plugins/effective_address/footprint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace effective_address {
namespace {

constexpr std::uint32_t kFewestSlots = 4, kMostSlots = 2 * Footprint::kMostPages;
constexpr std::uint64_t kLinesMask = (1 << kLinesOfPageShift) - 1;

// A register has the longest run of zeros at the end of all hashes that selected it, plus 1.
void add_to_sketch(std::uint8_t* registers, std::uint32_t count, std::uint64_t value) {
    const std::uint64_t h = hash(value);
    const auto index = static_cast<std::uint32_t>(h) & (count - 1);
    const std::uint64_t rest = h >> std::countr_zero(count) | std::uint64_t{1} << 52;
    const auto rank = static_cast<std::uint8_t>(std::countr_zero(rest) + 1);
    if (registers[index] < rank) registers[index] = rank;
}

// The paper's estimator, with linear counting while registers are empty. Hashes of 64 bits need no
// correction for large numbers.
std::uint64_t cardinality(const std::uint8_t* registers, std::uint32_t count) {
    double sum = 0;
    std::uint32_t empty = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        sum += std::ldexp(1.0, -registers[i]);
        empty += registers[i] == 0;
    }
    const double m = count;
    const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
    const bool small = raw <= 2.5 * m && empty != 0;
    return static_cast<std::uint64_t>(std::llround(small ? m * std::log(m / empty) : raw));
}

}  // namespace

Footprint::Footprint() : table_(std::make_unique<Page[]>(kFewestSlots)), mask_(kFewestSlots - 1) {}

void Footprint::add_range(std::uint64_t first, std::uint64_t last, Budget& budget) {
    const std::uint64_t last_page = last >> kLinesOfPageShift;
    for (std::uint64_t page = first >> kLinesOfPageShift; page <= last_page; ++page) {
        std::uint64_t lines = ~std::uint64_t{0};
        if (page == first >> kLinesOfPageShift) lines <<= first & kLinesMask;
        if (page == last_page) lines &= ~std::uint64_t{0} >> (kLinesMask - (last & kLinesMask));
        add_to_page(page, lines, budget);
    }
}

void Footprint::add_to_page(std::uint64_t page, std::uint64_t lines, Budget& budget) {
    if (registers_) return add_to_sketches(page, lines);
    Page* found = &slot_of(page);
    if (found->lines == 0) {
        if (used_ > mask_ / 2) {
            const std::uint32_t slots = 2 * (mask_ + 1);
            if (slots <= kMostSlots && budget.bytes >= slots * sizeof(Page))
                grow(slots, budget);
            else
                estimate_from_now_on(budget);
            return add_to_page(page, lines, budget);
        }
        found->number = page;
        ++used_;
    }
    found->lines |= lines;
}

void Footprint::grow(std::uint32_t slots, Budget& budget) {
    budget.bytes -= slots * sizeof(Page);
    budget.bytes += (mask_ + 1) * sizeof(Page);
    const std::unique_ptr<Page[]> old = std::exchange(table_, std::make_unique<Page[]>(slots));
    const std::uint32_t old_slots = std::exchange(mask_, slots - 1) + 1;
    for (std::uint32_t i = 0; i < old_slots; ++i)
        if (old[i].lines != 0) slot_of(old[i].number) = old[i];
}

// Keeps one slot that belongs to no page, so that add() finds nothing in it.
void Footprint::estimate_from_now_on(Budget& budget) {
    registers_ = std::make_unique<std::uint8_t[]>(std::size_t{2} * kRegisters);
    for (std::uint32_t i = 0; i <= mask_; ++i)
        if (table_[i].lines != 0) add_to_sketches(table_[i].number, table_[i].lines);
    budget.bytes += (mask_ + 1) * sizeof(Page);
    table_ = std::make_unique<Page[]>(1);
    mask_ = 0;
}

void Footprint::add_to_sketches(std::uint64_t page, std::uint64_t lines) {
    add_to_sketch(registers_.get() + kRegisters, kRegisters, page);
    for (; lines != 0; lines &= lines - 1) {
        const auto line = static_cast<std::uint64_t>(std::countr_zero(lines));
        add_to_sketch(registers_.get(), kRegisters, page << kLinesOfPageShift | line);
    }
}

std::uint64_t Footprint::lines() const {
    if (registers_) return cardinality(registers_.get(), kRegisters);
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i <= mask_; ++i)
        sum += static_cast<std::uint64_t>(std::popcount(table_[i].lines));
    return sum;
}

std::uint64_t Footprint::pages() const {
    return registers_ ? cardinality(registers_.get() + kRegisters, kRegisters) : used_;
}

namespace {

constexpr std::uint32_t kFewestItems = 4;
// In a half-full table, about one look-up in three meets another item first, and its branch is
// mispredicted.
constexpr std::uint32_t kSlotsPerItem = 4;

}  // namespace

void FrequentItems::add(std::uint64_t value, std::uint64_t weight, std::uint32_t capacity) {
    if (slots_ == 0) rehash(kFewestItems * kSlotsPerItem, 0);
    total_ += weight;
    Item* item = &slot_of(value);
    if (item->count == 0) {
        if (used_ == slots_ / kSlotsPerItem) {
            make_room(capacity);
            item = &slot_of(value);
        }
        item->value = value;
        ++used_;
    }
    item->count += weight;
}

void FrequentItems::make_room(std::uint32_t capacity) {
    if (slots_ < capacity * kSlotsPerItem) return rehash(slots_ * 2, 0);
    static thread_local std::vector<std::uint64_t> counts;
    counts.clear();
    for (std::uint32_t i = 0; i < slots_; ++i)
        if (items_[i].count != 0) counts.push_back(items_[i].count);
    const auto median = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
    std::nth_element(counts.begin(), median, counts.end());
    error_ += *median;
    rehash(slots_, *median);
}

// Moves the items to a table of `slots` slots and lowers their counts by `less`. With many
// different items, this happens so often that allocating memory each time would take half of the
// run.
void FrequentItems::rehash(std::uint32_t slots, std::uint64_t less) {
    static thread_local std::vector<Item> old;
    old.assign(items_.get(), items_.get() + slots_);
    if (slots == slots_)
        std::fill_n(items_.get(), slots, Item{});
    else
        items_ = std::make_unique<Item[]>(slots);
    slots_ = slots;
    bits_ = static_cast<unsigned>(std::countr_zero(slots));
    used_ = 0;
    for (const Item& item : old) {
        if (item.count <= less) continue;
        slot_of(item.value) = {item.value, item.count - less};
        ++used_;
    }
}

std::vector<Item> FrequentItems::top(std::size_t most) const {
    std::vector<Item> found;
    for (std::uint32_t i = 0; i < slots_; ++i)
        if (items_[i].count != 0) found.push_back(items_[i]);
    const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
    std::partial_sort(found.begin(), end, found.end(), [](const Item& a, const Item& b) {
        return a.count != b.count ? a.count > b.count : a.value < b.value;
    });
    found.erase(end, found.end());
    return found;
}

}  // namespace effective_address
