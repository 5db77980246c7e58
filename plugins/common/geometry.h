// The shape of a cache: what --D1=SIZE,WAYS,LINE says and what the processor says of itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cache {

struct Geometry {
    std::uint64_t size = 0;  // bytes
    std::uint32_t ways = 0;
    std::uint32_t line = 0;  // bytes

    // 0 if the shape says nothing.
    std::uint64_t sets() const {
        const std::uint64_t way = std::uint64_t{ways} * line;
        return way == 0 ? 0 : size / way;
    }
    bool operator==(const Geometry&) const = default;
};

struct Geometries {
    Geometry i1, d1, ll;
};

// Limits of a line: the smallest holds every instruction in two lines, the largest is what the
// capture filter accepts.
inline constexpr std::uint32_t kSmallestLine = 16;
inline constexpr std::uint32_t kLargestLine = 4096;
// More than any cache has; keeps the sizes of tables within 64 bits.
inline constexpr std::uint32_t kMostWays = 65536;

// Reads a number of bytes; K, M and G, also KB and KiB, stand for powers of 1024. False if it is
// none.
bool parse_size(std::string_view text, std::uint64_t& size);

// What is wrong with a geometry, or an empty string.
std::string complaint(const Geometry& geometry);

// Reads "SIZE,WAYS,LINE", as in 32768,8,64 and 32K,8,64, with a power of two of sets. On failure
// returns nothing and says in `why` what is wrong.
std::optional<Geometry> parse_geometry(std::string_view text, std::string& why);

// The geometry with a power of two of sets: as many sets as the largest power of two that fits,
// and as many more ways as keep the size, rounded as Cachegrind rounds.
Geometry with_power_of_two_sets(const Geometry& geometry);

// The caches of the processor this runs on; its highest level is LL. Levels that it does not
// describe stay as in `otherwise`.
Geometries processor_caches(const Geometries& otherwise);

// As in the desc: lines of Cachegrind's files.
std::string describe(const Geometry& geometry);

}  // namespace cache
