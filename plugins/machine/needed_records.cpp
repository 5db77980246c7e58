#include "plugins/machine/needed_records.h"

#include "plugins/machine/describe.h"
#include "plugins/machine/page_sizes.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/replacement.h"
#include "plugins/machine/translation.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace machine {
namespace {

bool has_inclusive(const Machine& machine) {
    return std::any_of(machine.caches.begin(), machine.caches.end(),
                       [](const Cache& cache) { return cache.inclusion == Inclusion::kInclusive; });
}

// True if a second reference to the most recent line of a first cache changes nothing there, if no
// other reference came between. In an LRU cache with more than one way, a prefetched line comes
// second to the most recent one. In other caches it can replace the most recent line.
bool forgets_repetition_of_last(const Cache& cache) {
    return forgets_repetition(cache.replacement) &&
           std::all_of(cache.prefetch.begin(), cache.prefetch.end(), [&](const Prefetch& prefetch) {
               return !sees_hits(prefetch) && cache.ways > 1 && cache.replacement.policy == "lru";
           });
}

// The same for the most recent line of each set: the number of sets.
std::uint32_t sets_of_recent(const Machine& machine, const Cache& cache) {
    constexpr std::uint64_t kMost = 1 << 16;
    const std::uint64_t sets = cache.sets(machine.line);
    if (cache.hash != Hash::kModulus || !std::has_single_bit(sets) || cache.classify) return 1;
    return static_cast<std::uint32_t>(std::min(sets, kMost));
}

std::uint32_t needed_fetches(const Machine& machine) {
    const std::uint32_t first = first_cache(machine, Holds::kInstructions);
    if (!buffers_forget_repetition(machine)) return 0;
    if (first == kMemory) return 1;
    const Cache& cache = machine.caches[first];
    if (cache.holds != Holds::kInstructions || has_inclusive(machine) ||
        !forgets_repetition_of_last(cache))
        return 0;
    return machine.tlbs.empty() && cache.prefetch.empty() ? sets_of_recent(machine, cache) : 1;
}

// With one set, a filter would omit almost nothing.
std::uint32_t needed_data(const Machine& machine) {
    const std::uint32_t first = first_cache(machine, Holds::kData);
    if (first == kMemory || has_inclusive(machine) || machine.tells_sharing() ||
        !machine.tlbs.empty())
        return 0;
    const Cache& cache = machine.caches[first];
    if (cache.holds != Holds::kData || !forgets_repetition_of_last(cache) ||
        !cache.write_allocate || !cache.write_back)
        return 0;
    // A line that the program prefetches comes second to the most recent one, like a line that the
    // cache prefetches.
    if (cache.replacement.policy != "lru" || cache.ways == 1) return 0;
    const std::uint64_t sets = cache.sets(machine.line);
    const std::uint32_t recent = sets_of_recent(machine, cache);
    return recent == 1 && sets != 1 ? 0 : recent;
}

}  // namespace

bool buffers_forget_repetition(const Machine& machine) {
    const Translation translation(machine);
    const std::size_t sizes = machine.page != 0 ? 1 : std::size(PageSizes::kSizes);
    for (std::uint32_t size = 0; size < sizes; ++size) {
        const Translation::Way& way = translation.way(false, size);
        if (way.tlbs.empty()) continue;
        if (!way.first_is_apart || !forgets_repetition(machine.tlbs[way.tlbs[0].tlb].replacement))
            return false;
    }
    return true;
}

NeededRecords needed_records(const Machine& machine) {
    return {.fetch_sets = needed_fetches(machine), .data_sets = needed_data(machine)};
}

}  // namespace machine
