// The first level of caches of a thread, simulated where the program runs: only references that
// miss it are recorded (trace_capture_misses). Both caches replace the line of a set that was used
// least recently; a line's last use is the value of a clock that goes on with each use of the
// cache.
//
// Translated code does itself what is frequent: see miss_references.cpp for data, fetches.cpp for
// instructions. A use of a line that is in the cache only changes the time of its last use. What
// misses goes to stubs (emit/first_level_stubs.cpp), and rare cases to the functions below.
#pragma once

#include "framework/trace/context_nodes.h"

#include <cstddef>
#include <cstdint>

namespace assay::native {

struct FirstLevel {
    struct Shape {
        std::uint32_t line_bytes, sets, ways;  // powers of two, but for the ways; 0: not simulated
    };
    static constexpr std::uint32_t kMostLines = 4096;         // of a cache
    static constexpr std::uint32_t kMostWays = 64;            // of a set
    static constexpr std::uint32_t kPlaces = 65536;           // a power of two
    static constexpr std::uint32_t kMostCodeLines = 1 << 23;  // of the program
    // What a clock goes on by: times leave room for the number of a way.
    static constexpr std::uint32_t kTick = kMostWays;

    // Way w of set s is at the index s * ways + w, its place. Places are told in bytes, times
    // kPlaceUnit.
    struct Cache {
        alignas(64) std::uint64_t lines[kMostLines];  // 0: none
        std::uint64_t uses[kMostLines];               // when the line was used last
        std::uint64_t clock;
        std::uint32_t set_mask, ways;
    };
    // Of its parts, for translated code.
    static constexpr std::size_t kLines = 0, kUses = kMostLines * sizeof(std::uint64_t),
                                 kClock = 2 * kUses;
    static constexpr std::uint32_t kPlaceUnit = sizeof(std::uint64_t);
    // The cache may have another line that has the same element of data_places.
    static constexpr std::uint16_t kAmbiguous = 1;

    // `filter`: Context::data_filter, of which `filter_mask` selects an entry. `context`: where the
    // number of the present node is found that records are given (trace::tells_contexts).
    void initialise(const Shape& data_shape, const Shape& code_shape, unsigned char* filter,
                    std::uint64_t filter_mask, const trace::ContextNode* const* context = nullptr);
    // As when a thread begins.
    void clear();
    // A reference to no more than a line; of a larger one it is the first bytes. True if it misses.
    bool refers(std::uint64_t address, std::uint64_t bytes);

    Cache data;  // lines are addresses
    Cache code;  // lines are CodeCache::line_number()
    // By address / size of a line, modulo kPlaces. If a line is in the cache and this is not
    // kAmbiguous, it is there.
    alignas(64) std::uint16_t data_places[kPlaces];
    // By a line's number: where it is, plus kPlaceUnit; 0: not in the cache.
    alignas(64) std::uint16_t code_places[kMostCodeLines];

    unsigned char* data_filter;
    std::uint64_t data_filter_mask, data_line_bytes;
    std::uint32_t data_line_shift;
    const trace::ContextNode* const* context_node;  // nullptr: records have none
};
static_assert(offsetof(FirstLevel::Cache, lines) == FirstLevel::kLines);
static_assert(offsetof(FirstLevel::Cache, uses) == FirstLevel::kUses);
static_assert(offsetof(FirstLevel::Cache, clock) == FirstLevel::kClock);
static_assert((FirstLevel::kMostLines + 1) * FirstLevel::kPlaceUnit <= UINT16_MAX);

}  // namespace assay::native

// What stubs of translated code call (in_translated_code.h): one use of the cache, and where it
// misses its record at `cursor`, behind which there is room for two. They return the cursor behind.
extern "C" {
std::uint64_t assay_first_level_reference(assay::native::FirstLevel* level, std::uint64_t address,
                                          std::uint64_t cursor, std::uint64_t site,
                                          std::uint64_t bytes);
// References of 8 bytes each, of consecutive sites, from `address` to `distance` (signed) above it;
// no more than a line.
std::uint64_t assay_first_level_series(assay::native::FirstLevel* level, std::uint64_t address,
                                       std::uint64_t cursor, std::uint64_t site,
                                       std::int64_t distance);
// Lines by their numbers: the first one in the lower half.
std::uint64_t assay_first_level_fetch(assay::native::FirstLevel* level, std::uint64_t pc,
                                      std::uint64_t cursor, std::uint64_t site,
                                      std::uint64_t lines);
}
