// Hash functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace effective_address {

// Every bit depends on every bit: the finaliser of splitmix64 (Steele, Lea and Flood, "Fast
// Splittable Pseudorandom Number Generators", OOPSLA 2014).
inline std::uint64_t hash(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
    return x ^ x >> 31;
}

// A slot of a table of 2^bits, in one multiplication: by 2^64 over the golden ratio (Knuth, The Art
// of Computer Programming, volume 3, section 6.4).
inline std::size_t slot_by_hash(std::uint64_t x, unsigned bits) {
    return static_cast<std::size_t>(x * 0x9E3779B97F4A7C15ULL >> (64 - bits));
}

}  // namespace effective_address
