#include "framework/driver/shared/first_level.h"

#include "assay/trace_types.h"

#include <initializer_list>

namespace assay::driver {
namespace {

using std::uint32_t;
using std::uint64_t;

PART_OF_THESE uint64_t append(const FirstLevel& level, uint64_t cursor, uint64_t value,
                              uint64_t site) {
    auto* const record = reinterpret_cast<trace_record_t*>(cursor);
    record->value = value;
    record->site = static_cast<uint32_t>(site);
    record->aux = level.context_node == nullptr ? 0 : (*level.context_node)->number;
    return cursor + sizeof *record;
}

PART_OF_THESE uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// The way of a set whose line was used least recently. use(way) returns the time of its last use.
// No processor can predict which way this is, so the code has no branch and two chains of
// comparisons.
template <typename Use>
PART_OF_THESE uint32_t least_recent(uint32_t ways, const Use& use) {
    uint64_t even = use(0), odd = ~uint64_t{0};
    uint32_t way = 1;
    for (; way + 1 < ways; way += 2) {
        odd = smaller(odd, use(way) + way);
        even = smaller(even, use(way + 1) + way + 1);
    }
    if (way < ways) odd = smaller(odd, use(way) + way);
    return static_cast<uint32_t>(smaller(even, odd) % FirstLevel::kTick);
}

// Searches all ways. Returns true for a miss. `place`: where the line is now.
IN_TRANSLATED_CODE bool search(FirstLevel& level, uint64_t line, uint32_t& place) {
    FirstLevel::Cache& cache = level.data;
    const auto number = static_cast<uint32_t>(line >> level.data_line_shift);
    const uint32_t first = (number & cache.set_mask) * cache.ways;
    uint32_t way = 0;
    while (way < cache.ways && cache.lines[first + way] != line) ++way;
    const bool missed = way == cache.ways;
    if (missed) way = least_recent(cache.ways, [&](uint32_t at) { return cache.uses[first + at]; });
    place = first + way;
    cache.lines[place] = line;
    bool ambiguous = false;
    for (uint32_t at = first; at < first + cache.ways; ++at) {
        const auto other = static_cast<uint32_t>(cache.lines[at] >> level.data_line_shift);
        ambiguous |= (other ^ number) % FirstLevel::kPlaces == 0 && at != place;
    }
    level.data_places[number % FirstLevel::kPlaces] = static_cast<std::uint16_t>(
        place * FirstLevel::kPlaceUnit | (ambiguous ? FirstLevel::kAmbiguous : 0));
    return missed;
}

// Returns true for a miss. Only lines with the same element of data_places can be equal.
PART_OF_THESE bool use(FirstLevel& level, uint64_t line) {
    if (level.uses_known(line)) return false;
    FirstLevel::Cache& cache = level.data;
    const auto number = static_cast<uint32_t>(line >> level.data_line_shift);
    std::uint16_t& known = level.data_places[number % FirstLevel::kPlaces];
    uint32_t place = known / FirstLevel::kPlaceUnit;
    const auto there = static_cast<uint32_t>(cache.lines[place] >> level.data_line_shift);
    bool missed = false;
    if ((there ^ number) % FirstLevel::kPlaces != 0 && (known & FirstLevel::kAmbiguous) == 0) {
        const uint32_t first = (number & cache.set_mask) * cache.ways;
        place =
            first + least_recent(cache.ways, [&](uint32_t at) { return cache.uses[first + at]; });
        cache.lines[place] = line;
        known = static_cast<std::uint16_t>(place * FirstLevel::kPlaceUnit);
        missed = true;
    } else {
        missed = search(level, line, place);
    }
    cache.note_use(place);
    __builtin_memcpy(level.data_filter + (line & level.data_filter_mask), &line, sizeof line);
    return missed;
}

IN_TRANSLATED_CODE bool use_both(FirstLevel& level, uint64_t first, uint64_t last) {
    const bool missed = use(level, first);
    return use(level, last) || missed;
}

PART_OF_THESE bool reference(FirstLevel& level, uint64_t address, uint64_t bytes) {
    const uint64_t size = level.data_line_bytes;
    const uint64_t first = address & -size;
    const uint64_t last = (address + smaller(bytes, size) - 1) & -size;
    return first == last ? use(level, first) : use_both(level, first, last);
}

PART_OF_THESE bool use_code(FirstLevel& level, uint32_t line) {
    if (level.uses_known_code(line)) return false;
    FirstLevel::Cache& cache = level.code;
    const uint32_t first = (line & cache.set_mask) * cache.ways;
    const uint32_t place =
        first + least_recent(cache.ways, [&](uint32_t at) { return cache.uses[first + at]; });
    level.code_places[cache.lines[place]] = 0;
    cache.lines[place] = line;
    level.code_places[line] = static_cast<std::uint16_t>((place + 1) * FirstLevel::kPlaceUnit);
    cache.note_use(place);
    return true;
}

uint32_t log2_of(uint32_t value) {
    return static_cast<uint32_t>(__builtin_ctz(value));
}

}  // namespace

void FirstLevel::initialise(const Shape& data_shape, const Shape& code_shape, unsigned char* filter,
                            uint64_t filter_mask, const trace::ContextNode* const* context) {
    context_node = context;
    data_filter = filter;
    data_filter_mask = filter_mask;
    data_line_bytes = data_shape.line_bytes;
    data_line_shift = data_shape.line_bytes == 0 ? 0 : log2_of(data_shape.line_bytes);
    data.set_mask = data_shape.sets - 1;
    data.ways = data_shape.ways;
    code.set_mask = code_shape.sets - 1;
    code.ways = code_shape.ways;
}

bool FirstLevel::refers(uint64_t address, uint64_t bytes) {
    return reference(*this, address, bytes);
}

// Resets all used elements, and touches no untouched page. An element of data_places is only used
// together with its line, so data_places needs no reset.
void FirstLevel::clear() {
    for (Cache* const cache : {&data, &code}) {
        for (uint32_t place = 0; place < (cache->set_mask + 1) * cache->ways; ++place) {
            if (cache == &code) code_places[code.lines[place]] = 0;
            cache->lines[place] = cache->uses[place] = 0;
        }
    }
}

}  // namespace assay::driver

using assay::driver::FirstLevel;

extern "C" {

IN_TRANSLATED_CODE std::uint64_t assay_first_level_reference(FirstLevel* level,
                                                             std::uint64_t address,
                                                             std::uint64_t cursor,
                                                             std::uint64_t site,
                                                             std::uint64_t bytes) {
    return assay::driver::reference(*level, address, bytes)
               ? assay::driver::append(*level, cursor, address, site)
               : cursor;
}

IN_TRANSLATED_CODE std::uint64_t assay_first_level_series(FirstLevel* level, std::uint64_t address,
                                                          std::uint64_t cursor, std::uint64_t site,
                                                          std::int64_t distance) {
    constexpr std::int64_t kBytes = 8;
    const std::int64_t step = distance < 0 ? -kBytes : kBytes;
    const std::uint64_t size = level->data_line_bytes;
    std::uint64_t line = 1;  // none
    for (std::int64_t at = 0;; at += step, ++site) {
        const std::uint64_t reference = address + static_cast<std::uint64_t>(at);
        const std::uint64_t last = (reference + kBytes - 1) & -size;
        if ((reference & -size) != line || last != line) {
            if (assay::driver::reference(*level, reference, kBytes))
                cursor = assay::driver::append(*level, cursor, reference, site);
            line = last;
        }
        if (at == distance) return cursor;
    }
}

IN_TRANSLATED_CODE std::uint64_t assay_first_level_fetch(FirstLevel* level, std::uint64_t pc,
                                                         std::uint64_t cursor, std::uint64_t site,
                                                         std::uint64_t lines) {
    bool missed = assay::driver::use_code(*level, static_cast<std::uint32_t>(lines));
    missed |= assay::driver::use_code(*level, static_cast<std::uint32_t>(lines >> 32));
    return missed ? assay::driver::append(*level, cursor, pc, site) : cursor;
}

}  // extern "C"
