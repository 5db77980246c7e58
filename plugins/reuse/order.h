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
#pragma once

#include <cstdint>

namespace reuse {

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
}  // namespace reuse
