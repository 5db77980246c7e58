// The first level of caches of a thread, simulated in the program: only references that miss it are
// recorded (trace_capture_misses). Both caches replace the least recently used line of a set. A
// line's last use is the value of a clock that each use of the cache advances.
//
// Translated code handles the frequent case itself: see miss_references.cpp for data and
// fetches.cpp for instructions. A use of a line that is in the cache only changes the time of its
// last use. Stubs (emit/first_level_stubs.cpp) handle misses, and the functions below handle rare
// cases.
#pragma once

#include "framework/driver/shared/in_translated_code.h"
#include "framework/trace/context_nodes.h"

#include <cstddef>
#include <cstdint>

namespace assay::driver {

struct FirstLevel {
    struct Shape {
        std::uint32_t line_bytes, sets, ways;  // powers of two, except `ways`; 0: not simulated
    };
    static constexpr std::uint32_t kMostLines = 4096;         // in a cache
    static constexpr std::uint32_t kMostWays = 64;            // in a set
    static constexpr std::uint32_t kPlaces = 65536;           // a power of two
    static constexpr std::uint32_t kMostCodeLines = 1 << 23;  // in the program
    // The step of a clock: the lower bits of a time have room for the number of a way.
    static constexpr std::uint32_t kTick = kMostWays;

    // Way w of set s has the index s * ways + w, its place. Code expresses places in bytes, the
    // index times kPlaceUnit.
    struct Cache {
        alignas(64) std::uint64_t lines[kMostLines];  // 0: none
        std::uint64_t uses[kMostLines];               // when the line was used last
        std::uint64_t clock;
        std::uint32_t set_mask, ways;

        PART_OF_THESE void note_use(std::uint32_t place) { uses[place] = clock += kTick; }
    };
    // Offsets of Cache's members, for translated code.
    static constexpr std::size_t kLines = 0, kUses = kMostLines * sizeof(std::uint64_t),
                                 kClock = 2 * kUses;
    static constexpr std::uint32_t kPlaceUnit = sizeof(std::uint64_t);
    // A flag in data_places: the cache may contain another line with the same element of
    // data_places.
    static constexpr std::uint16_t kAmbiguous = 1;

    // `filter`: Context::data_filter. `filter_mask` selects an entry of it. `context`: points to
    // the current node, whose number goes into records (trace::tells_contexts).
    void initialise(const Shape& data_shape, const Shape& code_shape, unsigned char* filter,
                    std::uint64_t filter_mask, const trace::ContextNode* const* context = nullptr);
    // Restores the state at a thread's start.
    void clear();
    // Simulates a reference of at most a line; of a larger reference, pass the first bytes. Returns
    // true if it misses.
    bool refers(std::uint64_t address, std::uint64_t bytes);
    // Uses the line at this address if data_places tells where it is. Returns false otherwise.
    PART_OF_THESE bool uses_known(std::uint64_t line);
    // Uses a line of code that is in the cache. Returns false if it is not.
    PART_OF_THESE bool uses_known_code(std::uint32_t line);

    Cache data;  // lines are addresses
    Cache code;  // lines are CodeCache::line_number()
    // Indexed by address / size of a line, modulo kPlaces. A line that is in the cache is at the
    // place given here, unless the element has kAmbiguous.
    alignas(64) std::uint16_t data_places[kPlaces];
    // Indexed by a line's number: its place plus kPlaceUnit; 0: not in the cache.
    alignas(64) std::uint16_t code_places[kMostCodeLines];

    unsigned char* data_filter;
    std::uint64_t data_filter_mask, data_line_bytes;
    std::uint32_t data_line_shift;
    const trace::ContextNode* const* context_node;  // nullptr: records carry no context
};
static_assert(offsetof(FirstLevel::Cache, lines) == FirstLevel::kLines);
static_assert(offsetof(FirstLevel::Cache, uses) == FirstLevel::kUses);
static_assert(offsetof(FirstLevel::Cache, clock) == FirstLevel::kClock);
static_assert((FirstLevel::kMostLines + 1) * FirstLevel::kPlaceUnit <= UINT16_MAX);

bool FirstLevel::uses_known(std::uint64_t line) {
    const std::uint32_t known = data_places[(line >> data_line_shift) % kPlaces];
    const std::uint32_t place = known / kPlaceUnit;
    if (data.lines[place] != line || (known & kAmbiguous) != 0) return false;
    data.note_use(place);
    __builtin_memcpy(data_filter + (line & data_filter_mask), &line, sizeof line);
    return true;
}

bool FirstLevel::uses_known_code(std::uint32_t line) {
    const std::uint32_t known = code_places[line];
    if (known == 0) return false;
    code.note_use(known / kPlaceUnit - 1);
    return true;
}

}  // namespace assay::driver

// Stubs of translated code call these functions (in_translated_code.h). Each simulates one use of
// the cache and appends the record of a miss at `cursor`, which has room for two records. Returns
// the cursor after the records.
extern "C" {
std::uint64_t assay_first_level_reference(assay::driver::FirstLevel* level, std::uint64_t address,
                                          std::uint64_t cursor, std::uint64_t site,
                                          std::uint64_t bytes);
// References of 8 bytes each at consecutive sites, from `address` to `distance` (signed) above it;
// at most a line.
std::uint64_t assay_first_level_series(assay::driver::FirstLevel* level, std::uint64_t address,
                                       std::uint64_t cursor, std::uint64_t site,
                                       std::int64_t distance);
// `lines`: numbers of lines, the first one in the lower half.
std::uint64_t assay_first_level_fetch(assay::driver::FirstLevel* level, std::uint64_t pc,
                                      std::uint64_t cursor, std::uint64_t site,
                                      std::uint64_t lines);
}
