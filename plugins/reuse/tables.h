// What the inner loops are given: plain data, for files that are compiled for different processors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reuse {

// Which positions in time hold the last reference of their line: a bit for each, in hierarchical
// counts, so that it takes a few loads to tell how many such positions are behind a given one.
//
// The stack of Mattson, Gecsei, Slutz and Traiger ("Evaluation techniques for storage hierarchies",
// IBM Systems Journal 9(2), 1970) has the lines in the order of these positions. Bennett and
// Kruskal
// ("LRU stack processing", IBM Journal of Research and Development 19(4), 1975) count them with a
// tree over time. Here four levels have, for each of 32 parts, how many bits are set in the parts
// behind it: a question is a load for each level, and a change an addition to a few vectors.
//
// The words of the last 64 to 127 positions are not in the hierarchy yet, but in `previous` and
// `current`. All functions are static, since files with instructions of newer processors have them,
// too: kernel.h.

inline constexpr std::uint32_t kWordBits = 64;

// The hierarchy, by position.
struct Levels {
    std::uint64_t* words;       // by position / 64
    std::uint16_t* after_word;  // by word: bits in the later words of its 32
    std::uint16_t* after_2k;    // by 2^11 positions: bits in the later ones of their 32
    std::uint32_t* after_64k;   // by 2^16 positions, likewise
    std::uint32_t* after_2m;    // by 2^21 positions: bits in all later ones
};

struct Order {
    Levels levels;
    std::uint64_t previous, current;  // words of the positions from `base` - 64 on
    std::uint32_t base;               // a multiple of 64, and not 0
    std::uint32_t next;               // position of the next reference, in `current`
    std::uint32_t time;               // of the next reference, modulo 2^32
    std::uint64_t lines;              // different ones so far
};

namespace {

inline constexpr std::uint32_t kParts = 32, kPartShift = 5;

// Of `parts`, adds to those before number `end`. Written so that the compiler makes vectors of it.
template <typename T>
inline void add_before(T* parts, std::uint32_t end, std::uint32_t bits) {
    const T limit = static_cast<T>(end), change = static_cast<T>(bits);
    for (T i = 0; i < kParts; ++i)
        parts[i] = static_cast<T>(parts[i] + (i < limit ? change : T{0}));
}

// `bits` more are set in a word; modulo 2^32, so that it can be fewer.
inline void add_bits(const Levels& levels, std::uint32_t word, std::uint32_t bits) {
    constexpr std::uint32_t kMask = kParts - 1;
    const std::uint32_t of_2k = word >> kPartShift, of_64k = of_2k >> kPartShift,
                        of_2m = of_64k >> kPartShift;
    add_before(levels.after_word + (word & ~kMask), word & kMask, bits);
    add_before(levels.after_2k + (of_2k & ~kMask), of_2k & kMask, bits);
    add_before(levels.after_64k + (of_64k & ~kMask), of_64k & kMask, bits);
    for (std::uint32_t i = 0; i < of_2m; ++i) levels.after_2m[i] += bits;
}

// How many bits are set behind a position.
inline std::uint32_t bits_after(const Levels& levels, std::uint32_t position) {
    const std::uint32_t word = position / kWordBits;
    const std::uint64_t rest = levels.words[word] >> position % kWordBits >> 1;
    return static_cast<std::uint32_t>(__builtin_popcountll(rest)) + levels.after_word[word] +
           levels.after_2k[word >> kPartShift] + levels.after_64k[word >> 2 * kPartShift] +
           levels.after_2m[word >> 3 * kPartShift];
}

// Sets the bits of a word that has none.
inline void set_word(const Levels& levels, std::uint32_t word, std::uint64_t bits) {
    levels.words[word] = bits;
    add_bits(levels, word, static_cast<std::uint32_t>(__builtin_popcountll(bits)));
}

}  // namespace

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
