// The inner loops, compiled once for each instruction set. Only the files kernel_*.cpp include this
// header. All functions are local to the file, so that the linker cannot choose code for a newer
// processor for functions that files share.
#pragma once

#include "plugins/reuse/tables.h"

#include <cstddef>

namespace reuse {
namespace {

inline std::uint32_t ones(std::uint64_t word) {
    return static_cast<std::uint32_t>(__builtin_popcountll(word));
}

inline Found farther(Found a, Found b) {
    if (a.distance == kNever || b.distance == kNever) return {kNever, 0};
    return {a.distance > b.distance ? a.distance : b.distance, a.age > b.age ? a.age : b.age};
}

// Counts a reference. Pass `number` values that go up with each reference.
inline void count(const Tables& tables, Found found, std::size_t number) {
    if (found.distance == kNever) return;
    // Does not branch on the age, because nobody could predict that. An age of 2^32 looks like 0,
    // which has no leading one.
    const auto bits = 32U - static_cast<std::uint32_t>(__builtin_clz(found.age | 1));
    if (found.distance < kNearDistances) [[likely]] {
        const std::size_t of = bits << kNearBits | found.distance;
        ++tables.near[of * kCopies + number % kCopies];
        return;
    }
    ++tables.distances[found.distance];
    ++tables.ages[bits];
}

inline void note_miss(const Tables& tables, Found found, std::uint32_t reference, Miss* misses,
                      std::size_t& miss_count) {
    if (found.distance < tables.limits[0]) return;
    std::uint32_t bucket = tables.limit_count;
    if (found.distance != kNever)
        for (bucket = 0; bucket + 1 < tables.limit_count; ++bucket)
            if (found.distance < tables.limits[bucket + 1]) break;
    misses[miss_count++] = {reference, bucket};
}

// The age and distance of a line that is below the first lines, and is removed from there.
inline Found take_out(Order& order, std::uint64_t* entry, std::uint32_t time, std::uint32_t above) {
    const std::uint64_t known = *entry;
    const auto position = static_cast<std::uint32_t>(known);
    if (position == 0) {
        ++order.lines;
        return {kNever, 0};
    }
    *entry = 0;
    Found found{above, time - static_cast<std::uint32_t>(known >> 32)};
    const std::uint32_t at = position - (order.base - kWordBits);
    if (at < 2 * kWordBits) {
        // The bit is in one of two words. Choosing it without a branch avoids mispredictions.
        const std::uint64_t bit = std::uint64_t{1} << at % kWordBits;
        const std::uint64_t later = ~(bit - 1) & ~bit;
        const std::uint64_t in_current = -std::uint64_t{at / kWordBits};  // all bits or no bit
        found.distance += ones(order.previous & later & ~in_current) +
                          ones(order.current & (later | ~in_current));
        order.previous &= ~(bit & ~in_current);
        order.current &= ~(bit & in_current);
    } else {
        found.distance +=
            bits_after(order.levels, position) + ones(order.previous) + ones(order.current);
        order.levels.words[position / kWordBits] &= ~(std::uint64_t{1} << position % kWordBits);
        add_bits(order.levels, position / kWordBits, UINT32_MAX);
    }
    return found;
}

// Puts a line directly below the first lines.
inline void put(Order& order, std::uint64_t* entry, std::uint32_t time) {
    *entry = std::uint64_t{time} << 32 | order.next;
    order.current |= std::uint64_t{1} << order.next % kWordBits;
    if (++order.next % kWordBits == 0) {
        set_word(order.levels, order.base / kWordBits - 1, order.previous);
        order.previous = order.current;
        order.current = 0;
        order.base += kWordBits;
    }
}

inline void measure_items(Order& shared, const Tables& tables, const Item* items,
                          const Entries* entries, std::size_t item_count, std::uint32_t above,
                          Miss* misses, std::size_t& miss_count) {
    Order order = shared;
    Found lower{};
    for (std::size_t i = 0; i < item_count; ++i) {
        const Item& item = items[i];
        Found found = take_out(order, entries[i].line, item.time, above);
        if (item.victim != kNoLine) put(order, entries[i].victim, item.victim_time);
        if (item.role != kAlone) [[unlikely]] {
            if (item.role == kLower) {
                lower = found;
                continue;
            }
            found = farther(item.role == kUpper ? lower : item.other, found);
        }
        count(tables, found, i);
        note_miss(tables, found, item.reference, misses, miss_count);
    }
    shared = order;
}

// For kernels without first lines: each line takes its own place.
inline std::size_t touch_none(Order& order, const Touch* touches, std::size_t touch_count,
                              Item* items) {
    for (std::size_t i = 0; i < touch_count; ++i, ++order.time)
        items[i] = {touches[i].line,      touches[i].line, order.time, order.time,
                    touches[i].reference, touches[i].role, {}};
    return touch_count;
}

}  // namespace
}  // namespace reuse
