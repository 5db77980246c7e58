#include "plugins/common/geometry.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cache {
namespace {

// The last level is the highest one.
void take_cache(unsigned level, bool data, bool instructions, const Geometry& geometry,
                unsigned& highest, Geometries& found) {
    if (!complaint(geometry).empty()) return;
    if (level == 1 && instructions) found.i1 = geometry;
    if (level == 1 && data) found.d1 = geometry;
    if (level <= highest) return;
    highest = level;
    found.ll = geometry;
}

#if defined(__x86_64__)
// Leaves that list caches one per subleaf, in the same layout.
// Sources: Intel SDM volume 2, CPUID leaf 4; AMD APM volume 3, CPUID Fn8000_001D.
constexpr std::uint32_t kIntelCaches = 4;
constexpr std::uint32_t kAmdCaches = 0x8000001D;

enum Kind : std::uint32_t { kNone = 0, kData = 1, kInstruction = 2 };

struct Registers {
    std::uint32_t a, b, c, d;
};

std::optional<Registers> cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
    Registers r{};
    if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d)) return std::nullopt;
    return r;
}

Geometry decode(const Registers& r) {
    const std::uint32_t ways = (r.b >> 22) + 1;
    const std::uint32_t partitions = ((r.b >> 12) & 0x3FF) + 1;
    const std::uint32_t line = (r.b & 0xFFF) + 1;
    const std::uint64_t sets = std::uint64_t{r.c} + 1;
    return {std::uint64_t{ways} * partitions * line * sets, ways, line};
}

bool describes_caches(std::uint32_t leaf) {
    const auto first = cpuid(leaf, 0);
    return first && (first->a & 0x1F) != kNone;
}
#endif

template <class Number>
bool parse_number(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

bool parse_size(std::string_view text, std::uint64_t& size) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    std::string_view unit = text.substr(digits);
    unsigned shift = 0;
    if (!unit.empty()) {
        const std::size_t which = std::string_view("kKmMgG").find(unit.front());
        if (which == std::string_view::npos) return false;
        shift = 10 * static_cast<unsigned>(which / 2 + 1);
        unit.remove_prefix(1);
        if (!unit.empty() && unit != "B" && unit != "iB") return false;
    }
    if (!parse_number(text.substr(0, digits), size) || size > UINT64_MAX >> shift) return false;
    size <<= shift;
    return true;
}

std::string complaint(const Geometry& g) {
    if (g.size == 0 || g.ways == 0) return "size and associativity must be above 0";
    if (g.ways > kMostWays) return "the associativity must be at most " + std::to_string(kMostWays);
    if (!std::has_single_bit(g.line) || g.line < kSmallestLine || g.line > kLargestLine)
        return "the line size must be a power of two from 16 to 4096";
    const std::uint64_t way = std::uint64_t{g.ways} * g.line;
    if (g.size < way || g.size % way != 0)
        return "the size must be a multiple of associativity times line size, which is " +
               std::to_string(way);
    return {};
}

std::optional<Geometry> parse_geometry(std::string_view text, std::string& why) {
    const std::size_t comma = text.find(',');
    const std::size_t second = comma == text.npos ? text.npos : text.find(',', comma + 1);
    Geometry g;
    if (second == text.npos || !parse_size(text.substr(0, comma), g.size) ||
        !parse_number(text.substr(comma + 1, second - comma - 1), g.ways) ||
        !parse_number(text.substr(second + 1), g.line)) {
        why = "give three numbers, SIZE,WAYS,LINE, such as 32K,8,64";
        return std::nullopt;
    }
    why = complaint(g);
    if (why.empty() && !std::has_single_bit(g.sets()))
        why = "size / associativity / line size is the number of sets, " +
              std::to_string(g.sets()) + ", and must be a power of two";
    if (!why.empty()) return std::nullopt;
    return g;
}

Geometry with_power_of_two_sets(const Geometry& g) {
    if (std::has_single_bit(g.sets())) return g;
    const std::uint64_t sets = std::bit_floor(g.sets());
    const double factor = static_cast<double>(g.sets()) / static_cast<double>(sets);
    const auto ways = static_cast<std::uint32_t>(std::lround(g.ways * factor));
    return {sets * ways * g.line, ways, g.line};
}

Geometries caches_in(const std::string& folder, const Geometries& otherwise) {
    Geometries found = otherwise;
    unsigned highest = 1;
    for (unsigned i = 0;; ++i) {
        const auto text = [&](const char* file) {
            std::ifstream stream(folder + "/index" + std::to_string(i) + "/" + file);
            std::string word;
            stream >> word;
            return word;
        };
        const auto number = [&](const char* file) {
            std::uint32_t value = 0;
            parse_number(text(file), value);
            return value;
        };
        const std::string type = text("type");
        if (type.empty()) return found;
        Geometry geometry{0, number("ways_of_associativity"), number("coherency_line_size")};
        parse_size(text("size"), geometry.size);
        take_cache(number("level"), type == "Data", type == "Instruction", geometry, highest,
                   found);
    }
}

#if defined(__x86_64__)
Geometries processor_caches(const Geometries& otherwise) {
    Geometries found = otherwise;
    const std::uint32_t leaf = describes_caches(kIntelCaches) ? kIntelCaches : kAmdCaches;
    unsigned highest = 1;
    for (std::uint32_t i = 0;; ++i) {
        const auto r = cpuid(leaf, i);
        const std::uint32_t kind = r ? r->a & 0x1F : kNone;
        if (kind == kNone) return found;
        take_cache((r->a >> 5) & 7, kind == kData, kind == kInstruction, decode(*r), highest,
                   found);
    }
}
#else
Geometries processor_caches(const Geometries& otherwise) {
    return caches_in("/sys/devices/system/cpu/cpu0/cache", otherwise);
}
#endif

std::string describe(const Geometry& g) {
    return std::to_string(g.size) + " B, " + std::to_string(g.line) + " B, " +
           (g.ways == 1 ? std::string("direct-mapped")
                        : std::to_string(g.ways) + "-way associative");
}

}  // namespace cache
