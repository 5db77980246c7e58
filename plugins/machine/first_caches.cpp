#include "plugins/machine/first_caches.h"

#include "plugins/machine/describe.h"
#include "plugins/machine/replacement.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace machine {
namespace {

Demand demand(std::uint64_t line, const CacheArray& lines, const CacheArray::Inserted& inserted,
              std::uint32_t record) {
    return {.line = line,
            .is_prefetch = 0,
            .is_miss = 0,
            .is_last = 0,
            .gone = inserted.gone.number,
            .gone_flags = inserted.gone.flags,
            .place = lines.place_of(inserted.entry),
            .record = record};
}

// A user's library may not support calls from two threads.
bool is_built_in(const Cache& cache) {
    return is_policy(cache.replacement.policy) &&
           std::all_of(cache.prefetch.begin(), cache.prefetch.end(),
                       [](const Prefetch& prefetch) { return is_prefetcher(prefetch.kind); });
}

}  // namespace

bool FirstCaches::are_independent(const Machine& machine) {
    const auto inclusion_is = [&](std::uint32_t cache, Inclusion inclusion) {
        return machine.caches[cache].inclusion == inclusion;
    };
    const std::vector<std::uint32_t> next = next_caches(machine);
    const std::uint32_t fetches = first_cache(machine, Holds::kInstructions);
    const std::uint32_t data = first_cache(machine, Holds::kData);
    if (fetches == kMemory || data == kMemory || fetches == data) return false;
    if (!machine.tlbs.empty()) return false;  // FrontEnd simulates them
    for (const std::uint32_t number : {fetches, data}) {
        const Cache& cache = machine.caches[number];
        if (!is_first(machine, number) || cache.of != Of::kCore || !is_built_in(cache))
            return false;
        // A line from an exclusive cache stays dirty if it was dirty there.
        if (next[number] != kMemory && inclusion_is(next[number], Inclusion::kExclusive))
            return false;
        for (const Prefetch& prefetch : cache.prefetch)
            if (is_of_front_end(machine, number, prefetch)) return false;
    }
    for (std::uint32_t i = 0; i < machine.caches.size(); ++i)
        if (inclusion_is(i, Inclusion::kInclusive)) return false;
    return machine.caches[data].write_back && machine.caches[data].write_allocate;
}

FirstCaches::FirstCaches(const Machine& machine, const Columns& columns)
    : machine_(machine),
      columns_(columns),
      line_shift_(static_cast<unsigned>(std::countr_zero(machine.line))),
      first_{first_cache(machine, Holds::kInstructions), first_cache(machine, Holds::kData)},
      written_(machine.protocol == Protocol::kNone ? kDirty : kDirty | kModified) {}

bool FirstCaches::begin(std::uint32_t number, std::size_t records, bool operates, Steps& steps) {
    if (!are_here_) return false;
    const bool meets_others =
        machine_.protocol != Protocol::kNone && only_.value_or(number) != number;
    if (meets_others || operates) {
        for (auto& [core, own] : cores_)
            steps.given.push_back({core, {std::move(own.caches[0]), std::move(own.caches[1])}});
        are_here_ = false;
        cores_.clear();
        return false;
    }
    only_ = number_ = number;
    core_ = &cores_[number];
    for (const bool data : {false, true}) {
        if (!core_->caches[data])
            core_->caches[data] = std::make_unique<CacheInstance>(machine_, first_[data]);
        core_->missed[data] = kNone;
    }
    steps.has_demands = true;
    steps.demands.reserve(records);
    return true;
}

void FirstCaches::refer_further(const Touch& touch, std::uint64_t* entry, Steps& steps) {
    const bool data = touch.data();
    CacheInstance& cache = *core_->caches[data];
    const auto trigger =
        cache.observe({.line = touch.line,
                       .kind = touch.reference.kind,
                       .is_counted = true,  // counted by the supplier of the line
                       .is_lost = false,
                       .core = number_,
                       .executed = touch.reference.executed},
                      entry, columns_.caches[first_[data]],
                      [&](std::uint32_t column) { steps.count(touch.record, column); });
    const std::uint64_t flags = touch.reference.writes ? written_ : 0;
    std::vector<Demand>& demands = steps.demands;
    const std::size_t before = demands.size();
    if (entry) {
        *entry |= flags;
    } else {
        const auto inserted = cache.lines.insert(touch.line, flags, by(touch));
        Demand made = demand(touch.line, cache.lines, inserted, touch.record);
        made.is_miss = std::exchange(core_->missed[data], touch.record) != touch.record;
        demands.push_back(made);
    }
    if (trigger.is_due) prefetch(touch, entry != nullptr, trigger.first, steps);
    if (demands.size() != before) demands.back().is_last = 1;
}

void FirstCaches::prefetch(const Touch& touch, bool hit, bool first, Steps& steps) {
    const bool data = touch.data();
    CacheInstance& cache = *core_->caches[data];
    const Prefetcher::Reference reference{
        .line = touch.line,
        .address = std::max(touch.reference.address, touch.line << line_shift_),
        .hit = hit,
        .first = first,
        .by = by(touch)};
    for (const auto& prefetcher : cache.prefetchers) {
        wanted_.clear();
        prefetcher->reference(reference, wanted_);
        for (const auto& [line, level] : wanted_.all()) {
            if (line > kMostLine || cache.lines.find(line)) continue;
            const auto inserted = cache.prefetch(line, 0, by(touch), touch.reference.executed);
            Demand made = demand(line, cache.lines, inserted, touch.record);
            made.is_prefetch = 1;
            steps.demands.push_back(made);
        }
    }
}

}  // namespace machine
