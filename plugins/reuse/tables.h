// What the inner loops are given: plain data, for files that are compiled for different processors.
#pragma once

#include "plugins/reuse/order.h"

#include <cstddef>
#include <cstdint>

namespace reuse {

// The distance of a line that was not referenced before.
inline constexpr std::uint32_t kNever = UINT32_MAX;
// Distances below this are counted together with reuse times, longer ones apart from them. Reuse
// times are counted by their power of two.
inline constexpr std::uint32_t kNearBits = 5, kNearDistances = 1U << kNearBits;
// In so many copies, in turns: the same counter is often counted twice in succession, and the
// second addition would wait for the first one's.
inline constexpr std::uint32_t kCopies = 4;
inline constexpr std::uint32_t kAgeBuckets = 33;  // by the number of bits

struct Found {
    std::uint32_t distance;  // kNever
    std::uint32_t age;       // in references
};

enum Role : std::uint32_t {
    kAlone,
    kLower,  // of a reference to two lines, which counts as the farther of them: the next one
    kUpper,  // of those
    kHalf,   // of those, where of the other is known what was found: Item::other
};

// A line that a reference touches.
struct Touch {
    std::uint64_t line;
    std::uint32_t reference;  // its number, for Miss
    Role role;                // but kHalf
};

// A line that comes to the top of the stack from below its first lines.
struct Item {
    std::uint64_t line;
    std::uint64_t victim;  // the line that goes below them for it; kNoLine
    std::uint32_t time;
    std::uint32_t victim_time;  // of its last reference
    std::uint32_t reference;
    Role role;
    Found other;
};
inline constexpr std::uint64_t kNoLine = UINT64_MAX;

// What is known of lines below the first ones of the stack: the position, 0 of others, and above
// 2^32 the time of the last reference, modulo 2^32.
struct Entries {
    std::uint64_t *line, *victim;
};

// A reference at least as far as the first limit.
struct Miss {
    std::uint32_t reference;
    std::uint32_t bucket;  // the last limit that it reaches; their number if the line is new
};

// Where things are counted.
struct Tables {
    const std::uint32_t* limits;  // distances, ascending, at least one
    std::uint32_t limit_count;
    std::uint64_t* distances;  // by distance, of longer ones
    // By the number of bits of the age, in each by distance, and of each of these kCopies.
    std::uint64_t* near;
    std::uint64_t* ages;  // by the number of bits, where the distance is longer
};

// The first lines of the stack, in no order, with the times of their last references: relative to
// `time` of an Order, negative. Room for more makes most references cheap: of bzip2, 85 % are to
// one of 16.
struct Top {
    static constexpr std::uint32_t kMost = 16;
    alignas(64) std::uint64_t lines[kMost];  // kNoLine
    alignas(64) std::int32_t times[kMost];   // different ones
};

// Of one instruction set. There is room for as many items and misses as touches.
struct Kernel {
    // How many first lines it keeps: 0 or Top::kMost.
    std::uint32_t lines;
    // References lines one after the other. Counts those to first lines; the others become items.
    // Returns the number of items; adds to the number of misses.
    std::size_t (*touch)(Top& top, Order& order, const Tables& tables, const Touch* touches,
                         std::size_t count, Item* items, Miss* misses, std::size_t& miss_count);
    // Counts the items. There are as many positions.
    void (*measure)(Order& order, const Tables& tables, const Item* items, const Entries* entries,
                    std::size_t count, Miss* misses, std::size_t& miss_count);
};
extern const Kernel baseline_kernel, v3_kernel, v4_kernel;

}  // namespace reuse
