#include "plugins/machine/cache_instance.h"

#include "plugins/machine/levels.h"

#include <bit>

namespace machine {

CacheInstance::CacheInstance(const Machine& machine, std::uint32_t number)
    : lines(machine.caches[number].sets(machine.line), machine.caches[number].ways,
            machine.caches[number].hash, machine.caches[number].replacement,
            machine.caches[number].late != 0),
      late(machine.caches[number].late) {
    const Cache& cache = machine.caches[number];
    for (const Prefetch& prefetch : cache.prefetch) {
        const bool is_own = !is_of_front_end(machine, number, prefetch);
        prefetchers.push_back(is_own ? make_prefetcher(prefetch, machine.line) : nullptr);
        sees_hits = sees_hits || (is_own && machine::sees_hits(prefetch));
        sees_all = sees_all || sees_hits || !is_own;
    }
    if (!prefetchers.empty()) replaced_.resize(lines.lines());
    if (std::has_single_bit(replaced_.size())) replaced_mask_ = replaced_.size() - 1;
    if (cache.classify) kinds.emplace(lines.lines());
}

}  // namespace machine
