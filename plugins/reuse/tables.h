// Plain data for the inner loops, shared by files that are compiled for different processors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reuse {

// The positions in time that hold the last reference to their line, one bit each. Hierarchical
// counts give the number of such positions after a given one in a few loads.
//
// The stack of Mattson, Gecsei, Slutz and Traiger ("Evaluation techniques for storage hierarchies",
// IBM Systems Journal 9(2), 1970) has the lines in the order of these positions. Bennett and
// Kruskal ("LRU stack processing", IBM Journal of Research and Development 19(4), 1975) count them
// with a tree over time. Here, each of four levels has 32 parts, and counts the bits that are set
// in the parts after each. A query takes one load per level, and an update adds to a few vectors.
//
// The words of the last 64 to 127 positions are in `previous` and `current`, and not yet in the
// hierarchy. All functions are static, because files with instructions of newer processors also
// contain them: kernel.h.

inline constexpr std::uint32_t kWordBits = 64;

// The hierarchy, by position.
struct Levels {
    std::uint64_t* words;       // by position / 64
    std::uint16_t* after_word;  // by word: bits in the later words of its group of 32
    std::uint16_t* after_2k;    // by 2^11 positions: bits in the later parts of its group of 32
    std::uint32_t* after_64k;   // by 2^16 positions, in the same way
    std::uint32_t* after_2m;    // by 2^21 positions: bits in all later parts
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

// Adds `bits` to the parts before number `end`. Written so that the compiler vectorises it.
template <typename T>
inline void add_before(T* parts, std::uint32_t end, std::uint32_t bits) {
    const T limit = static_cast<T>(end), change = static_cast<T>(bits);
    for (T i = 0; i < kParts; ++i)
        parts[i] = static_cast<T>(parts[i] + (i < limit ? change : T{0}));
}

// Adds to the number of bits that are set in a word, modulo 2^32, so that the change can be
// negative.
inline void add_bits(const Levels& levels, std::uint32_t word, std::uint32_t bits) {
    constexpr std::uint32_t kMask = kParts - 1;
    const std::uint32_t of_2k = word >> kPartShift, of_64k = of_2k >> kPartShift,
                        of_2m = of_64k >> kPartShift;
    add_before(levels.after_word + (word & ~kMask), word & kMask, bits);
    add_before(levels.after_2k + (of_2k & ~kMask), of_2k & kMask, bits);
    add_before(levels.after_64k + (of_64k & ~kMask), of_64k & kMask, bits);
    for (std::uint32_t i = 0; i < of_2m; ++i) levels.after_2m[i] += bits;
}

// The number of bits that are set after a position.
inline std::uint32_t bits_after(const Levels& levels, std::uint32_t position) {
    const std::uint32_t word = position / kWordBits;
    const std::uint64_t rest = levels.words[word] >> position % kWordBits >> 1;
    return static_cast<std::uint32_t>(__builtin_popcountll(rest)) + levels.after_word[word] +
           levels.after_2k[word >> kPartShift] + levels.after_64k[word >> 2 * kPartShift] +
           levels.after_2m[word >> 3 * kPartShift];
}

// Sets the bits of a word that was empty.
inline void set_word(const Levels& levels, std::uint32_t word, std::uint64_t bits) {
    levels.words[word] = bits;
    add_bits(levels, word, static_cast<std::uint32_t>(__builtin_popcountll(bits)));
}

}  // namespace

// The distance of a line without an earlier reference.
inline constexpr std::uint32_t kNever = UINT32_MAX;
// Distances below this are counted together with reuse times, by the power of two of the time.
// Larger distances and their times are counted separately.
inline constexpr std::uint32_t kNearBits = 5, kNearDistances = 1U << kNearBits;
// Each counter exists in this many copies, which are used in turn. Often the same counter is
// incremented twice in succession, and the second addition would wait for the first.
inline constexpr std::uint32_t kCopies = 4;
inline constexpr std::uint32_t kAgeBuckets = 33;  // by the number of bits

struct Found {
    std::uint32_t distance;  // kNever for a new line
    std::uint32_t age;       // in references
};

enum Role : std::uint32_t {
    kAlone,
    kLower,  // the first line of a reference to two lines, which counts at the larger distance;
             // kUpper follows
    kUpper,  // the second line
    kHalf,   // one of the two lines, if the result of the other is known: Item::other
};

// A line that a reference touches.
struct Touch {
    std::uint64_t line;
    std::uint32_t reference;  // number of the reference, for Miss
    Role role;                // any role except kHalf
};

// A line that comes to the top of the stack from below the first lines.
struct Item {
    std::uint64_t line;
    std::uint64_t victim;  // the line that leaves the first lines for it; kNoLine
    std::uint32_t time;
    std::uint32_t victim_time;  // of its last reference
    std::uint32_t reference;
    Role role;
    Found other;
};
inline constexpr std::uint64_t kNoLine = UINT64_MAX;

// The entries of lines below the first lines. An entry has the position in its low 32 bits, 0 for
// other lines, and above it the time of the last reference modulo 2^32.
struct Entries {
    std::uint64_t *line, *victim;
};

// A reference whose distance reaches at least the first limit.
struct Miss {
    std::uint32_t reference;
    std::uint32_t bucket;  // index of the highest limit that it reaches; the number of limits if
                           // the line is new
};

// The counters.
struct Tables {
    const std::uint32_t* limits;  // distances, ascending, at least one
    std::uint32_t limit_count;
    std::uint64_t* distances;  // counts of larger distances, by distance
    // Counts by the number of bits of the age, then by distance, with kCopies of each.
    std::uint64_t* near;
    std::uint64_t* ages;  // by the number of bits of the age, for larger distances
};

// The first lines of the stack in any order, with the times of their last references, which are
// negative and relative to `time` of an Order. Sixteen lines make most references cheap: in bzip2,
// 85 % of the references are to one of them.
struct Top {
    static constexpr std::uint32_t kMost = 16;
    alignas(64) std::uint64_t lines[kMost];  // kNoLine
    alignas(64) std::int32_t times[kMost];   // all different
};

// The functions for one instruction set. There is room for as many items and misses as touches.
struct Kernel {
    // The number of first lines that it keeps: 0 or Top::kMost.
    std::uint32_t lines;
    // References lines one after the other. Counts references to first lines, and makes items of
    // the others. Returns the number of items, and adds to the number of misses.
    std::size_t (*touch)(Top& top, Order& order, const Tables& tables, const Touch* touches,
                         std::size_t count, Item* items, Miss* misses, std::size_t& miss_count);
    // Counts the items. `entries` has an element for each item.
    void (*measure)(Order& order, const Tables& tables, const Item* items, const Entries* entries,
                    std::size_t count, Miss* misses, std::size_t& miss_count);
};
extern const Kernel baseline_kernel, v3_kernel, v4_kernel;

}  // namespace reuse
