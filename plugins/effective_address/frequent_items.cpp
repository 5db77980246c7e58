#include "plugins/effective_address/frequent_items.h"

#include <algorithm>
#include <bit>

namespace effective_address {
namespace {

constexpr std::uint32_t kFewestItems = 4;
// In a table that is half full, about every third look-up first finds another item, and its branch
// is mispredicted.
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

// Copies the table into `slots` slots and lowers counts by `less`. The memory is reused, because
// with many different items this is so frequent that allocation took as long as all other work.
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
