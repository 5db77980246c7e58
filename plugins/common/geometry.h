// The shape of a cache, from an option such as --D1=SIZE,WAYS,LINE or from the processor.
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

    // 0 if the shape is not set.
    std::uint64_t sets() const {
        const std::uint64_t way = std::uint64_t{ways} * line;
        return way == 0 ? 0 : size / way;
    }
    bool operator==(const Geometry&) const = default;
};

struct Geometries {
    Geometry i1, d1, ll;
};

// Limits of a line. Every instruction fits into two of the smallest lines. The largest line is the
// limit of the capture filter.
inline constexpr std::uint32_t kSmallestLine = 16;
inline constexpr std::uint32_t kLargestLine = 4096;
// More ways than any real cache. Keeps the sizes of tables within 64 bits.
inline constexpr std::uint32_t kMostWays = 65536;

// Reads a number of bytes. K, M and G, also KB and KiB, stand for powers of 1024. Returns false if
// `text` is not a number.
bool parse_size(std::string_view text, std::uint64_t& size);

// An error message for an invalid geometry, or an empty string.
std::string complaint(const Geometry& geometry);

// Reads "SIZE,WAYS,LINE", such as 32768,8,64 or 32K,8,64. The number of sets must be a power of
// two. On failure, returns empty and sets `why` to an error message.
std::optional<Geometry> parse_geometry(std::string_view text, std::string& why);

// Lowers the number of sets to a power of two and adds ways to keep the size, rounded like
// Cachegrind.
Geometry with_power_of_two_sets(const Geometry& geometry);

// The caches of the host processor; its highest level is LL. Levels that the processor does not
// describe are taken from `otherwise`.
Geometries processor_caches(const Geometries& otherwise);

// The caches that a folder of the kernel's describes, as /sys/devices/system/cpu/cpu0/cache does
// (Documentation/ABI/testing/sysfs-devices-system-cpu).
Geometries caches_in(const std::string& folder, const Geometries& otherwise);

// Text as in the desc: lines of Cachegrind's files.
std::string describe(const Geometry& geometry);

}  // namespace cache
