// Keeps the first lines of the stack in vector registers. A line stays in its lane: a reference to
// it changes only the lane's time. The distance is the number of lanes with a later time, so that
// no reference waits for the one before. Single lanes are read from memory, which has the same
// values: taking them out of a register would occupy the port that does all the other work. In
// bzip2, only 15 % of the references go on to the hierarchy.
#include "plugins/reuse/kernel.h"

#include <immintrin.h>

namespace reuse {
namespace {

struct Lanes {
    __m512i low, high;  // lines
    __m512i times;

    explicit Lanes(const Top& top)
        : low(_mm512_load_si512(top.lines)),
          high(_mm512_load_si512(top.lines + 8)),
          times(_mm512_load_si512(top.times)) {}
    __mmask16 find(__m512i line) const {
        return _mm512_kunpackb(_mm512_cmpeq_epi64_mask(high, line),
                               _mm512_cmpeq_epi64_mask(low, line));
    }
};

// Loads a value into all lanes. This needs no vector port.
template <typename T>
__m512i broadcast(const T* value) {
    asm("" : "+r"(value));  // keeps the compiler from using a register
    if constexpr (sizeof(T) == 8)
        return _mm512_set1_epi64(static_cast<long long>(*value));
    else
        return _mm512_set1_epi32(static_cast<int>(*value));
}

// The interface is that of Top: `times` continue from `now`, which is not negative.
std::size_t touch_first(Top& top, Order& order, const Tables& tables, const Touch* touches,
                        std::size_t touch_count, Item* items, Miss* misses,
                        std::size_t& miss_count) {
    Lanes lanes(top);
    __m512i now_everywhere = _mm512_setzero_si512();
    std::size_t item_count = 0;
    const std::uint32_t nearest = tables.limits[0];
    Found lower{};
    bool lower_is_item = false;
    for (std::size_t i = 0; i < touch_count;
         ++i, now_everywhere = _mm512_add_epi32(now_everywhere, _mm512_set1_epi32(1))) {
        const Touch& touch = touches[i];
        const auto now = static_cast<std::int32_t>(i);
        const __m512i line = broadcast(&touch.line);
        __mmask16 lane = lanes.find(line);
        if (lane != 0) [[likely]] {
            std::int32_t* const time = &top.times[_tzcnt_u64(lane)];
            Found found{ones(_mm512_cmpgt_epi32_mask(lanes.times, broadcast(time))),
                        static_cast<std::uint32_t>(now - *time)};
            *time = now;
            lanes.times = _mm512_mask_mov_epi32(lanes.times, lane, now_everywhere);
            if (touch.role != kAlone) [[unlikely]] {
                if (touch.role == kLower) {
                    lower = found;
                    lower_is_item = false;
                    continue;
                }
                if (lower_is_item) {
                    items[item_count - 1].role = kHalf;
                    items[item_count - 1].other = found;
                    continue;
                }
                found = farther(lower, found);
            }
            count(tables, found, i);
            if (found.distance >= nearest) [[unlikely]]
                note_miss(tables, found, touch.reference, misses, miss_count);
            continue;
        }
        const std::int32_t oldest = _mm512_reduce_min_epi32(lanes.times);
        lane = _mm512_cmpeq_epi32_mask(lanes.times, _mm512_set1_epi32(oldest));
        const auto number = static_cast<unsigned>(__builtin_ctz(lane));
        Item& item = items[item_count++];
        item = {touch.line,
                top.lines[number],
                order.time + static_cast<std::uint32_t>(now),
                order.time + static_cast<std::uint32_t>(oldest),
                touch.reference,
                touch.role,
                {}};
        top.lines[number] = touch.line;
        top.times[number] = now;
        lanes.low = _mm512_mask_mov_epi64(lanes.low, static_cast<__mmask8>(lane), line);
        lanes.high = _mm512_mask_mov_epi64(lanes.high, static_cast<__mmask8>(lane >> 8), line);
        lanes.times = _mm512_mask_mov_epi32(lanes.times, lane, now_everywhere);
        if (touch.role == kLower) [[unlikely]] {
            lower_is_item = true;
        } else if (touch.role == kUpper && !lower_is_item) [[unlikely]] {
            item.role = kHalf;
            item.other = lower;
        }
    }
    _mm512_store_si512(top.times, _mm512_sub_epi32(lanes.times, now_everywhere));
    order.time += static_cast<std::uint32_t>(touch_count);
    return item_count;
}

}  // namespace

const Kernel v4_kernel{
    Top::kMost, touch_first,
    [](Order& order, const Tables& tables, const Item* items, const Entries* entries,
       std::size_t count, Miss* misses, std::size_t& miss_count) {
        measure_items(order, tables, items, entries, count, Top::kMost, misses, miss_count);
    }};

}  // namespace reuse
