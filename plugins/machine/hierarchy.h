// The caches of a machine: processes the references that FrontEnd passes on.
//
// docs/reference/machine-file.md has the rules, in the order in which they apply. Not thread-safe.
#pragma once

#include "plugins/machine/cache_array.h"
#include "plugins/machine/cache_instance.h"
#include "plugins/machine/coherence.h"
#include "plugins/machine/columns.h"
#include "plugins/machine/describe.h"
#include "plugins/machine/machine.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/reference.h"
#include "plugins/machine/steps.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace machine {

class Hierarchy {
  public:
    // Both arguments must live longer. Throws std::bad_alloc, and std::runtime_error if a library
    // of the user is unusable.
    Hierarchy(const Machine& machine, const Columns& columns);
    Hierarchy(const Hierarchy&) = delete;
    Hierarchy& operator=(const Hierarchy&) = delete;

    // Processes a reference by a core, whose number is below Machine::cores, or any number if that
    // is 0. `wishes` belong to the reference. Adds the events to `counts`, which has an element for
    // each column, except Ir, Dr and Dw.
    void refer(std::uint32_t core, const Reference& reference, std::span<const Wish> wishes,
               std::uint64_t* counts);
    // True if the reference hits in the first cache and has no other effect than a hit there, which
    // is then applied: refer() need not be called. If prefetchers request lines, calls `counts`,
    // which returns the argument of refer().
    template <typename Counts>
    bool refer_quickly(std::uint32_t core, const Reference& reference, std::span<const Wish> wishes,
                       const Counts& counts) {
        const Quick& quick = quick_[reference.kind != Kind::kFetch];
        if (!quick.is_possible || core >= cores_.size() || !cores_[core]) return false;
        const std::uint64_t end = reference.address + std::min(reference.bytes, machine_.line) - 1;
        const std::uint64_t line = reference.address >> line_shift_;
        CacheInstance& first = *cores_[core]->caches[quick.cache];
        const Referrer by = referrer(reference, core);
        if (end >> line_shift_ != line) {
            if (reference.writes || first.sees_hits || quick.sees_hits || !wishes.empty())
                return false;
            const std::uint64_t second = (end >> line_shift_) & kMostLine;
            const std::uint64_t* const entry = first.lines.find(second);
            if (!entry || (*entry & (kPrefetched | kWatched)) || !hits_quickly(first, line, by))
                return false;
            first.lines.touch(second, by);
            return true;
        }
        std::uint64_t* const entry =
            quick.sees_hits ? finds_quickly(first, line) : hits_quickly(first, line, by);
        if (!entry) return false;
        if (reference.writes) {
            if (!quick.writes_back) return false;
            if (quick.asks && !is_alone_ && !(*entry & kModified)) return false;
            *entry |= quick.written;
        }
        if (quick.sees_hits) first.lines.touch_found(entry, line & kMostLine, by);
        if (first.sees_hits || !wishes.empty())
            prefetch_behind_hit(core, reference, line & kMostLine, wishes, counts);
        return true;
    }
    // Processes an operation on a line, with the same arguments.
    void operate(std::uint32_t core, const Reference& operation, std::uint64_t* counts);
    // Processes the wishes of a reference that the caches need not see.
    void grant(std::uint32_t core, const Reference& reference, std::span<const Wish> wishes,
               std::uint64_t* counts);
    // True if, since the last call, an inclusive cache has removed a most recent line from a first
    // cache of the core that referred last. FrontEnd does not know this.
    bool has_lost_first() { return std::exchange(lost_first_, false); }
    // Takes the place of refer() and grant() if FirstCaches simulates the first caches: processes
    // the demands of one of them for a reference to a line. `again`: the last call was for the same
    // reference.
    void supply(std::uint32_t core, const Reference& reference, std::span<const Demand> demands,
                bool again, std::uint64_t* counts);
    // Takes over the first caches of fetches and of data that FirstCaches has simulated until now,
    // if it passes any.
    void take(std::uint32_t core, std::unique_ptr<CacheInstance> (&given)[2]);
    // Frees the caches of a core, if each thread has its own core.
    void forget(std::uint32_t core);

  private:
    struct Core {
        std::vector<CacheInstance*> caches;  // by index in Machine::caches
        std::vector<std::unique_ptr<CacheInstance>> own;
    };
    // Properties of a cache, stored for quick access.
    struct Rules {
        std::uint32_t next;   // the cache below, or kMemory
        std::uint64_t stays;  // flags that a line keeps when it comes from another cache
        bool is_coherent;     // holds data and belongs to one core
        bool is_exclusive;
        bool writes_back;
        bool allocates;    // inserts lines for writes that miss
        bool gives_clean;  // passes clean lines that it replaces to the cache below
    };
    // One line of a reference on its way through the caches.
    struct Request {
        Core& core;
        std::uint32_t number;  // of the core
        const Reference& reference;
        std::span<const Wish> wishes;  // of the reference
        std::uint64_t line;
        std::uint64_t* counts;
        bool prefetch = false;
        bool is_coherent = false;  // the other cores have been asked
        bool lost = false;         // this core lost the line to another core's write
    };
    struct Trigger {
        std::uint32_t cache;
        bool hit, first;
    };

    // Properties of the first cache of fetches or of data for refer_quickly().
    struct Quick {
        bool is_possible = false;
        bool sees_hits = false;  // the policy must not see a hit twice
        bool writes_back = false;
        bool asks = false;          // must ask other cores before it writes an unmodified line
        std::uint64_t written = 0;  // flags of a written line
        std::uint32_t cache = 0;
    };

    Quick quick(bool data) const;
    Core& core(std::uint32_t number) {
        if (number >= cores_.size() || !cores_[number]) make_core(number);
        return *cores_[number];
    }
    void make_core(std::uint32_t number);
    void make_room_for(Request& request, std::uint32_t first, const Demand& demand);
    bool is_above(std::uint32_t upper, std::uint32_t lower) const;

    // References the line. Returns its flags if a hit changes only the order of replacement,
    // otherwise null.
    static std::uint64_t* hits_quickly(CacheInstance& cache, std::uint64_t line,
                                       const Referrer& by) {
        std::uint64_t* const entry = cache.lines.touch(line & kMostLine, by);
        return entry && !(*entry & (kPrefetched | kWatched)) ? entry : nullptr;
    }
    // The same, without changing anything.
    static std::uint64_t* finds_quickly(CacheInstance& cache, std::uint64_t line) {
        std::uint64_t* const entry = cache.lines.find(line & kMostLine);
        return entry && !(*entry & (kPrefetched | kWatched)) ? entry : nullptr;
    }
    static Referrer referrer(const Reference& reference, std::uint32_t core) {
        return {reference.pc, reference.writes ? Kind::kWrite : reference.kind, core};
    }
    static Referrer referrer(const Request& request) {
        return referrer(request.reference, request.number);
    }
    void refer_to_line(Request& request);
    // Makes the line available to the cache above. If it comes from an exclusive cache, returns the
    // flags that it keeps, otherwise 0.
    std::uint64_t bring(Request& request, std::uint32_t cache);
    void write(Request& request, std::uint32_t cache);
    void put(Request& request, std::uint32_t cache, std::uint64_t flags);
    void bypass(Request& request, std::uint32_t cache, std::uint64_t line, std::uint64_t flags);
    // Handles the line that a cache of that core has replaced.
    void make_room(Request& request, std::uint32_t number, std::uint32_t cache,
                   CacheArray::Line gone);
    void back_invalidate(Request& request, std::uint32_t number, std::uint32_t cache,
                         CacheArray::Line& gone);
    bool hand_down(Request& request, std::uint32_t number, std::uint32_t cache, std::uint64_t line,
                   std::uint64_t flags);
    void observe(Request& request, std::uint32_t cache, std::uint64_t* entry);
    void prefetch_behind(Request& request);
    // Calls the prefetchers of the first cache after a hit.
    template <typename Counts>
    void prefetch_behind_hit(std::uint32_t core, const Reference& reference, std::uint64_t line,
                             std::span<const Wish> wishes, const Counts& counts) {
        const Prefetcher::Reference hit{.line = line,
                                        .address = reference.address,
                                        .hit = true,
                                        .first = false,
                                        .by = referrer(reference, core)};
        const std::uint32_t cache = first_[reference.kind != Kind::kFetch];
        const auto& prefetchers = cores_[core]->caches[cache]->prefetchers;
        for (std::uint32_t i = 0; i < prefetchers.size(); ++i) {
            want(prefetchers[i].get(), i, hit, wishes);
            if (!wanted_.all().empty()) prefetch_wanted(core, reference, line, counts());
        }
    }
    // Calls the prefetcher with that index after a reference, or takes FrontEnd's wishes if it is
    // null. The result is in wanted_.
    void want(Prefetcher* prefetcher, std::uint32_t number, const Prefetcher::Reference& reference,
              std::span<const Wish> wishes);
    void prefetch_wanted(std::uint32_t core, const Reference& reference, std::uint64_t line,
                         std::uint64_t* counts);
    void prefetch(Request& behind, std::uint32_t cache, const Prefetcher::Wanted& wanted);
    void prefetch_for_program(Request& request, std::uint32_t level);
    // Removes the line from the caches of all cores. `stays`: only writes it back.
    void flush(Request& request, bool stays);

    // Call it for each core that refers to something.
    void enter(std::uint32_t core) {
        if (is_alone_ && core != only_) enter_new(core);
    }
    void enter_new(std::uint32_t core);
    void lose(std::uint32_t core, std::uint64_t line, std::uint64_t flags,
              std::uint32_t left = kMemory);
    void leave_to_others(std::uint32_t core, std::uint64_t line, std::uint64_t flags);
    template <typename Visit>
    void each_copy_of_clusters(const Request& request, const Visit& visit);
    void ask_to_read(Request& request);
    void ask_to_write(Request& request);
    void release(Request& request, std::uint32_t core, bool cleans);
    void invalidate(Request& request, std::uint32_t core);
    void note_return(Request& request);
    std::uint64_t words(const Request& request) const;
    // True if one of the core's own caches, except `left`, has the line.
    bool is_kept(std::uint32_t core, std::uint64_t line, std::uint32_t left = kMemory);
    bool may_prefetch(Request& request, std::uint32_t cache);
    bool may_hand_down(const Request& request, std::uint32_t from, std::uint32_t to,
                       std::uint64_t line);
    void drop_fetched(const Request& request);

    // Adds without a branch, because `happens` is unpredictable.
    static void count(std::uint64_t* counts, std::uint32_t column, bool happens = true) {
        if (column != Columns::kNone) counts[column] += happens;
    }

    const Machine& machine_;
    const Columns& columns_;
    unsigned line_shift_;
    LineWords words_;
    bool coherent_;
    // Only one core has referred to anything. It has the lines in its own caches exclusive, or
    // modified if one of the copies is kModified. coherence_ and sharing_ are empty.
    bool is_alone_;
    std::uint32_t only_ = Coherence::kNobody;
    std::vector<Rules> rules_;              // by cache
    std::uint32_t first_[2];                // cache of fetches and of data
    std::vector<std::uint32_t> kept_in_;    // coherent caches of cores
    std::vector<std::uint32_t> clustered_;  // clusters' caches that hold data
    Quick quick_[2];
    std::vector<std::unique_ptr<Core>> cores_;
    std::vector<std::vector<std::unique_ptr<CacheInstance>>>
        shared_;  // by cache; then by cluster, or one element
    Coherence coherence_;
    Sharing sharing_;
    std::vector<Trigger> triggers_;
    std::uint64_t missed_ = 0;  // caches that the reference missed, as bits
    bool lost_first_ = false;
    Prefetcher::Lines wanted_;
};

}  // namespace machine
