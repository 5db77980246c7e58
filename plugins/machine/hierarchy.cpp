#include "plugins/machine/hierarchy.h"

#include "plugins/machine/front_end.h"

#include <algorithm>
#include <bit>

namespace machine {

Hierarchy::Hierarchy(const Machine& machine, const Columns& columns)
    : machine_(machine),
      columns_(columns),
      line_shift_(static_cast<unsigned>(std::countr_zero(machine.line))),
      words_(machine.line),
      coherent_(machine.protocol != Protocol::kNone),
      is_alone_(coherent_),
      first_{first_cache(machine, Holds::kInstructions), first_cache(machine, Holds::kData)},
      shared_(machine.caches.size()),
      coherence_(machine.protocol) {
    const std::vector<std::uint32_t> next = next_caches(machine);
    for (std::uint32_t i = 0; i < machine.caches.size(); ++i) {
        const Cache& cache = machine.caches[i];
        if (cache.of != Of::kCore) {
            const std::uint32_t instances = cache.of == Of::kCluster ? machine.clusters : 1;
            for (std::uint32_t n = 0; n < instances; ++n)
                shared_[i].push_back(std::make_unique<CacheInstance>(machine, i));
        }
        const auto is_exclusive = [&](std::uint32_t number) {
            return number != kMemory && machine.caches[number].inclusion == Inclusion::kExclusive;
        };
        const bool is_coherent =
            coherent_ && cache.of == Of::kCore && cache.holds != Holds::kInstructions;
        if (is_coherent) kept_in_.push_back(i);
        rules_.push_back({.next = next[i],
                          .stays = is_coherent ? kDirty | kModified | kWatched : kDirty,
                          .is_coherent = is_coherent,
                          .is_exclusive = is_exclusive(i),
                          .writes_back = cache.write_back,
                          .allocates = cache.write_allocate && !is_exclusive(i),
                          .gives_clean = is_exclusive(next[i])});
        if (cache.of == Of::kCluster && cache.holds != Holds::kInstructions)
            clustered_.push_back(i);
    }
    quick_[0] = quick(false);
    quick_[1] = quick(true);
    // The caches of a machine with a fixed number of cores are made before the program starts.
    for (std::uint32_t n = 0; n < std::max(machine.cores, 1u); ++n) core(n);
}

// A reference that turns out not to be quick comes to the cache twice, and the policy must not
// notice that. Policies that would notice are called only after the reference is known to be quick.
Hierarchy::Quick Hierarchy::quick(bool data) const {
    const std::uint32_t first = first_[data];
    if (first == kMemory) return {};
    const Cache& cache = machine_.caches[first];
    return {.is_possible = !cache.classify,
            .sees_hits = !forgets_repetition(cache.replacement),
            .writes_back = cache.write_back,
            .asks = rules_[first].is_coherent,
            .written = rules_[first].is_coherent ? kDirty | kModified : kDirty,
            .cache = first};
}

void Hierarchy::make_core(std::uint32_t number) {
    if (number >= cores_.size()) cores_.resize(number + 1);
    auto made = std::make_unique<Core>();
    for (std::uint32_t i = 0; i < machine_.caches.size(); ++i) {
        const Cache& cache = machine_.caches[i];
        if (cache.of == Of::kCore) {
            made->own.push_back(std::make_unique<CacheInstance>(machine_, i));
            made->caches.push_back(made->own.back().get());
        } else {
            const std::uint32_t which = cache.of == Of::kCluster ? machine_.cluster_of(number) : 0;
            made->caches.push_back(shared_[i][which].get());
        }
    }
    cores_[number] = std::move(made);
}

void Hierarchy::forget(std::uint32_t core) {
    if (machine_.cores == 0 && core < cores_.size()) cores_[core].reset();
}

void Hierarchy::refer(std::uint32_t number, const Reference& reference,
                      std::span<const Wish> wishes, std::uint64_t* counts) {
    Core& on = core(number);
    enter(number);
    missed_ = 0;
    const std::uint32_t bytes = std::min(reference.bytes, machine_.line);
    const std::uint64_t first = reference.address >> line_shift_;
    const std::uint64_t last = (reference.address + bytes - 1) >> line_shift_;
    for (std::uint64_t line = first; line <= last; ++line) {
        Request request{.core = on,
                        .number = number,
                        .reference = reference,
                        .wishes = wishes,
                        .line = line & kMostLine,
                        .counts = counts};
        refer_to_line(request);
    }
}

// Does the work of refer_to_line() and prefetch(), except what FirstCaches has already done for the
// first cache. If cores are coherent, there is only this one.
void Hierarchy::supply(std::uint32_t number, const Reference& reference,
                       std::span<const Demand> demands, bool again, std::uint64_t* counts) {
    Core& on = core(number);
    enter(number);
    if (!again) missed_ = 0;
    const std::uint32_t first = first_[reference.kind != Kind::kFetch];
    const auto request_of = [&](const Demand& demand) {
        return Request{.core = on,
                       .number = number,
                       .reference = reference,
                       .wishes = {},
                       .line = demand.line,
                       .counts = counts,
                       .prefetch = demand.is_prefetch != 0,
                       .is_coherent = rules_[first].is_coherent || demand.is_prefetch};
    };
    const Columns::OfCache& columns = columns_.caches[first];
    triggers_.clear();
    for (const Demand& demand : demands) {
        Request request = request_of(demand);
        if (demand.is_prefetch)
            count(counts, columns.prefetched);
        else if (demand.is_miss)
            count(counts, columns.misses[static_cast<std::size_t>(reference.kind)]);
        if (rules_[first].is_coherent && reference.writes && !demand.is_prefetch)
            ask_to_write(request);
        bring(request, rules_[first].next);
        make_room_for(request, first, demand);
    }
    if (triggers_.empty()) return;
    Request request = request_of(demands[0]);
    prefetch_behind(request);
}

// Does the work of make_room(). The hierarchy keeps a copy of the first cache's lines. In this
// copy, a line is also marked as modified if a cache below had that mark and has lost the line.
void Hierarchy::make_room_for(Request& request, std::uint32_t first, const Demand& demand) {
    std::uint64_t flags = demand.gone_flags;
    if (rules_[first].is_coherent)
        flags |= request.core.caches[first]->lines.place(demand.place, demand.line);
    count(request.counts, columns_.caches[first].useless, flags & kPrefetched);
    bool has_core_it = false;
    if (flags & kDirty) {
        count(request.counts, columns_.caches[first].write_backs);
        has_core_it = hand_down(request, request.number, first, demand.gone, flags);
    }
    if (is_alone_ && !has_core_it) leave_to_others(request.number, demand.gone, flags);
}

void Hierarchy::take(std::uint32_t number, std::unique_ptr<CacheInstance> (&given)[2]) {
    Core& of = core(number);
    for (const bool data : {false, true}) {
        if (!given[data]) continue;
        CacheInstance*& kept = of.caches[first_[data]];
        kept->lines.each([&](const CacheArray::Line& line) {
            if (line.flags & kModified) *given[data]->lines.find(line.number) |= kModified;
        });
        const auto own = std::find_if(of.own.begin(), of.own.end(),
                                      [&](const auto& each) { return each.get() == kept; });
        kept = given[data].get();
        *own = std::move(given[data]);
    }
}

void Hierarchy::refer_to_line(Request& request) {
    const std::uint32_t first = first_[request.reference.kind != Kind::kFetch];
    if (first == kMemory) return;
    triggers_.clear();
    if (request.reference.writes)
        write(request, first);
    else
        bring(request, first);
    drop_fetched(request);
    if (!triggers_.empty()) prefetch_behind(request);
}

std::uint64_t Hierarchy::bring(Request& request, std::uint32_t cache) {
    if (cache == kMemory) return 0;
    const Rules& rules = rules_[cache];
    CacheArray& lines = request.core.caches[cache]->lines;
    std::uint64_t* const entry = lines.touch(request.line, referrer(request));
    if (!entry && rules.is_coherent && !request.is_coherent) ask_to_read(request);
    if (!request.prefetch) observe(request, cache, entry);
    if (entry && !rules.is_exclusive) return 0;
    if (entry) {
        const std::uint64_t flags = lines.remove(request.line);
        if (is_alone_) leave_to_others(request.number, request.line, flags);
        return flags & rules.stays;
    }
    const std::uint64_t flags = bring(request, rules.next);
    if (rules.is_exclusive) return flags;
    put(request, cache, flags);
    return 0;
}

void Hierarchy::write(Request& request, std::uint32_t cache) {
    if (cache == kMemory) return;
    const Rules& rules = rules_[cache];
    std::uint64_t* const entry =
        request.core.caches[cache]->lines.touch(request.line, referrer(request));
    const bool is_first = rules.is_coherent && !request.is_coherent;
    std::uint64_t written = rules.writes_back ? std::uint64_t{kDirty} : 0;
    if (rules.is_coherent) {
        if (entry && (*entry & (kModified | kWatched)) == kModified)
            request.is_coherent = true;
        else if (!request.is_coherent)
            ask_to_write(request);
        written |= kModified;
        if (sharing_.is_watched(request.line)) written |= kWatched;
    }
    observe(request, cache, entry);
    if (entry) *entry = (*entry & ~std::uint64_t{kWatched}) | written;
    if (!rules.writes_back) {
        write(request, rules.next);
        if (!entry && rules.allocates) put(request, cache, written);
    } else if (!entry && rules.allocates) {
        bring(request, rules.next);
        put(request, cache, written);
    } else if (!entry) {
        write(request, rules.next);
    }
    if (!entry && !rules.allocates && is_first) lose(request.number, request.line, 0);
}

void Hierarchy::put(Request& request, std::uint32_t cache, std::uint64_t flags) {
    const auto inserted = request.core.caches[cache]->lines.insert(
        request.line, flags & rules_[cache].stays, referrer(request), request.prefetch);
    if (!inserted.entry) return bypass(request, cache, request.line, flags);
    if (inserted.gone.flags != 0) make_room(request, request.number, cache, inserted.gone);
}

// Written data of a line that does not come into the cache goes to the caches below.
void Hierarchy::bypass(Request& request, std::uint32_t cache, std::uint64_t line,
                       std::uint64_t flags) {
    if (flags & kDirty) hand_down(request, request.number, cache, line, flags);
}

void Hierarchy::make_room(Request& request, std::uint32_t number, std::uint32_t cache,
                          CacheArray::Line gone) {
    count(request.counts, columns_.caches[cache].useless, gone.flags & kPrefetched);
    if (machine_.caches[cache].inclusion == Inclusion::kInclusive)
        back_invalidate(request, number, cache, gone);
    count(request.counts, columns_.caches[cache].write_backs, gone.flags & kDirty);
    const bool has_core_it = ((gone.flags & kDirty) || rules_[cache].gives_clean) &&
                             hand_down(request, number, cache, gone.number, gone.flags);
    if (rules_[cache].is_coherent && !has_core_it) lose(number, gone.number, gone.flags, cache);
}

// An inclusive cache replaces a line: the caches above it lose the line as well.
void Hierarchy::back_invalidate(Request& request, std::uint32_t number, std::uint32_t cache,
                                CacheArray::Line& gone) {
    const CacheInstance* const instance = cores_[number]->caches[cache];
    for (std::uint32_t other = 0; other < cores_.size(); ++other) {
        if (!cores_[other] || cores_[other]->caches[cache] != instance) continue;
        bool had = false;
        std::uint64_t lost = 0;  // flags
        for (std::uint32_t above = 0; above < cache; ++above) {
            if (!is_above(above, cache)) continue;
            CacheArray& lines = cores_[other]->caches[above]->lines;
            const bool is_last = lines.can_be_last(gone.number);
            const std::uint64_t flags = lines.remove(gone.number);
            if (flags == 0) continue;
            if (is_last && (above == first_[0] || above == first_[1]) &&
                cores_[other]->caches[above] == request.core.caches[above])
                lost_first_ = true;
            had = had || rules_[above].is_coherent;
            lost |= flags & rules_[above].stays;
            count(request.counts, columns_.caches[cache].back_invalidations);
            if (flags & kPrefetched) count(request.counts, columns_.caches[above].useless);
        }
        gone.flags |= lost & rules_[cache].stays;
        // A core's own inclusive cache may still pass the line to another cache of the core.
        if (had && !rules_[cache].is_coherent) lose(other, gone.number, lost);
    }
}

bool Hierarchy::is_above(std::uint32_t upper, std::uint32_t lower) const {
    while (upper != kMemory && upper < lower) upper = rules_[upper].next;
    return upper == lower;
}

// A replaced line goes to an exclusive cache below, or if it is dirty, to the first cache that has
// the line, to an exclusive cache, or to memory. Returns true if that cache belongs to the core and
// is coherent.
bool Hierarchy::hand_down(Request& request, std::uint32_t number, std::uint32_t cache,
                          std::uint64_t line, std::uint64_t flags) {
    for (std::uint32_t below = rules_[cache].next; below != kMemory; below = rules_[below].next) {
        const Rules& rules = rules_[below];
        if (!(flags & kDirty) && !rules.is_exclusive) return false;
        CacheArray& lines = cores_[number]->caches[below]->lines;
        std::uint64_t* const entry = lines.find(line);
        if (entry && (rules.is_exclusive || rules.writes_back)) {
            *entry |= flags & rules.stays;
            return rules.is_coherent;
        }
        if (!entry && rules.is_exclusive && may_hand_down(request, cache, below, line)) {
            const auto inserted = lines.insert(line, flags & rules.stays, referrer(request));
            if (!inserted.entry) continue;
            if (inserted.gone.flags != 0) make_room(request, number, below, inserted.gone);
            return rules.is_coherent;
        }
    }
    return false;
}

void Hierarchy::observe(Request& request, std::uint32_t cache, std::uint64_t* entry) {
    const std::uint64_t bit = std::uint64_t{1} << cache;
    const auto trigger = request.core.caches[cache]->observe(
        {.line = request.line,
         .kind = request.reference.kind,
         .is_counted = (missed_ & bit) != 0,
         .is_lost = request.lost && rules_[cache].is_coherent,
         .core = request.number,
         .executed = request.reference.executed},
        entry, columns_.caches[cache],
        [&](std::uint32_t column) { count(request.counts, column); });
    if (!entry) missed_ |= bit;
    if (trigger.is_due) triggers_.push_back({cache, entry != nullptr, trigger.first});
}

// Starts with the prefetchers of the cache that is nearest to the core.
void Hierarchy::prefetch_behind(Request& request) {
    for (const Trigger& trigger : triggers_) {
        const Prefetcher::Reference reference{
            .line = request.line,
            .address = std::max(request.reference.address, request.line << line_shift_),
            .hit = trigger.hit,
            .first = trigger.first,
            .by = referrer(request)};
        const auto& prefetchers = request.core.caches[trigger.cache]->prefetchers;
        for (std::uint32_t i = 0; i < prefetchers.size(); ++i) {
            want(prefetchers[i].get(), i, reference, request.wishes);
            for (const auto& wanted : wanted_.all()) prefetch(request, trigger.cache, wanted);
        }
    }
}

void Hierarchy::want(Prefetcher* prefetcher, std::uint32_t number,
                     const Prefetcher::Reference& reference, std::span<const Wish> wishes) {
    wanted_.clear();
    if (prefetcher != nullptr) return prefetcher->reference(reference, wanted_);
    for (const Wish& wish : wishes)
        if (wish.behind == reference.line && wish.prefetcher == number) wanted_.add(wish.line);
}

void Hierarchy::prefetch_wanted(std::uint32_t number, const Reference& reference,
                                std::uint64_t line, std::uint64_t* counts) {
    Request request{.core = *cores_[number],
                    .number = number,
                    .reference = reference,
                    .wishes = {},
                    .line = line,
                    .counts = counts};
    const std::uint32_t first = first_[reference.kind != Kind::kFetch];
    for (const auto& wanted : wanted_.all()) prefetch(request, first, wanted);
}

void Hierarchy::grant(std::uint32_t number, const Reference& reference,
                      std::span<const Wish> wishes, std::uint64_t* counts) {
    core(number);
    enter(number);
    for (const Wish& wish : wishes) {
        wanted_.clear();
        wanted_.add(wish.line);
        prefetch_wanted(number, reference, wish.behind, counts);
    }
}

void Hierarchy::prefetch(Request& behind, std::uint32_t cache, const Prefetcher::Wanted& wanted) {
    const std::uint64_t line = wanted.line;
    if (line > kMostLine) return;
    const auto has_it = [&] { return behind.core.caches[cache]->lines.find(line); };
    while (machine_.caches[cache].level < wanted.level && rules_[cache].next != kMemory &&
           !has_it())
        cache = rules_[cache].next;
    if (has_it()) return;
    CacheInstance& instance = *behind.core.caches[cache];
    Request request{.core = behind.core,
                    .number = behind.number,
                    .reference = behind.reference,
                    .wishes = {},
                    .line = line,
                    .counts = behind.counts,
                    .prefetch = true,
                    .is_coherent = true};
    if (coherent_ && !may_prefetch(request, cache)) return;
    count(request.counts, columns_.caches[cache].prefetched);
    const std::uint64_t flags = bring(request, rules_[cache].next) & rules_[cache].stays;
    const auto inserted =
        instance.prefetch(line, flags, referrer(request), request.reference.executed);
    if (!inserted.entry) bypass(request, cache, line, flags);
    drop_fetched(request);
    if (inserted.gone.flags != 0) make_room(request, request.number, cache, inserted.gone);
}

void Hierarchy::operate(std::uint32_t number, const Reference& operation, std::uint64_t* counts) {
    Core& on = core(number);
    enter(number);
    Request request{.core = on,
                    .number = number,
                    .reference = operation,
                    .wishes = {},
                    .line = operation.address >> line_shift_ & kMostLine,
                    .counts = counts,
                    .prefetch = true,
                    .is_coherent = true};
    if (operation.operation == LineOperation::kPrefetch)
        prefetch_for_program(request, operation.level);
    else
        flush(request, operation.operation == LineOperation::kWriteBack);
}

// Like prefetch(), into the first cache of that level or below it.
void Hierarchy::prefetch_for_program(Request& request, std::uint32_t level) {
    std::uint32_t into = first_[true];
    if (into == kMemory) return;
    const auto has_it = [&] { return request.core.caches[into]->lines.find(request.line); };
    while (machine_.caches[into].level < level && rules_[into].next != kMemory && !has_it())
        into = rules_[into].next;
    if (has_it() || (coherent_ && !may_prefetch(request, into))) return;
    put(request, into, bring(request, rules_[into].next));
}

void Hierarchy::flush(Request& request, bool stays) {
    for (std::uint32_t other = 0; other < cores_.size(); ++other) {
        if (!cores_[other]) continue;
        for (std::uint32_t cache = 0; cache < machine_.caches.size(); ++cache) {
            CacheArray& lines = cores_[other]->caches[cache]->lines;
            std::uint64_t* const entry = lines.find(request.line);
            if (!entry) continue;
            count(request.counts, columns_.caches[cache].write_backs, *entry & kDirty);
            *entry &= ~std::uint64_t{kDirty};
            if (stays) continue;
            count(request.counts, columns_.caches[cache].useless, *entry & kPrefetched);
            lines.remove(request.line);
        }
        if (coherent_ && !is_alone_ && !stays) coherence_.drop(other, request.line);
    }
}

}  // namespace machine
