// Compiled for each instruction set without its own kernel.
#include "plugins/reuse/kernel.h"

namespace reuse {

const Kernel KERNEL{
    0,
    [](Top&, Order& order, const Tables&, const Touch* touches, std::size_t count, Item* items,
       Miss*, std::size_t&) { return touch_none(order, touches, count, items); },
    [](Order& order, const Tables& tables, const Item* items, const Entries* entries,
       std::size_t count, Miss* misses, std::size_t& miss_count) {
        measure_items(order, tables, items, entries, count, 0, misses, miss_count);
    }};

}  // namespace reuse
