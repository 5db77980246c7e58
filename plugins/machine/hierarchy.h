// The caches of a machine: what each reference does to them, behind FrontEnd.
//
// docs/reference/machine-file.md says the rules, in the order in which they apply. Not thread-safe.
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
    // Both stay their owner's, and there. Throws std::bad_alloc, and std::runtime_error if a
    // library of the user's own is unusable.
    Hierarchy(const Machine& machine, const Columns& columns);
    Hierarchy(const Hierarchy&) = delete;
    Hierarchy& operator=(const Hierarchy&) = delete;

    // A reference by a core, which is below Machine::cores, or any number if that is 0. `wishes`
    // are those of the reference. Adds to `counts`, which has an element for each column, what
    // happens; Ir, Dr and Dw are not counted.
    void refer(std::uint32_t core, const Reference& reference, std::span<const Wish> wishes,
               std::uint64_t* counts);
    // Whether a reference hits in the first cache and changes nothing that is counted now or later
    // but what a hit changes there, which is then done: refer() need not be called. `counts` is
    // called where prefetchers want something: it returns what refer() would be given.
    template <typename Counts>
    bool refer_quickly(std::uint32_t core, const Reference& reference, std::span<const Wish> wishes,
                       const Counts& counts) {
        const Quick& quick = quick_[reference.kind != Kind::kFetch];
        if (!quick.is_possible || core >= cores_.size() || !cores_[core]) return false;
        const std::uint64_t end = reference.address + std::min(reference.bytes, machine_.line) - 1;
        const std::uint64_t line = reference.address >> line_shift_;
        CacheInstance& first = *cores_[core]->caches[quick.cache];
        if (end >> line_shift_ != line) {
            if (reference.writes || first.sees_hits || quick.sees_hits || !wishes.empty())
                return false;
            const std::uint64_t second = (end >> line_shift_) & kMostLine;
            const std::uint64_t* const entry = first.lines.find(second);
            if (!entry || (*entry & (kPrefetched | kWatched)) ||
                !hits_quickly(first, line, reference))
                return false;
            first.lines.touch(second, reference.pc);
            return true;
        }
        std::uint64_t* const entry =
            quick.sees_hits ? finds_quickly(first, line) : hits_quickly(first, line, reference);
        if (!entry) return false;
        if (reference.writes) {
            if (!quick.writes_back) return false;
            if (quick.asks && !is_alone_ && !(*entry & kModified)) return false;
            *entry |= quick.written;
        }
        if (quick.sees_hits) first.lines.touch_found(entry, line & kMostLine, reference.pc);
        if (first.sees_hits || !wishes.empty())
            prefetch_behind_hit(core, reference, line & kMostLine, wishes, counts);
        return true;
    }
    // What is not a reference, of the same.
    void operate(std::uint32_t core, const Reference& operation, std::uint64_t* counts);
    // What the wishes of a reference bring that the caches need not see.
    void grant(std::uint32_t core, const Reference& reference, std::span<const Wish> wishes,
               std::uint64_t* counts);
    // Whether the core that referred last has lost a most recent line of a first cache since the
    // last call, to a cache that includes it: FrontEnd does not know that.
    bool has_lost_first() { return std::exchange(lost_first_, false); }
    // Where FirstCaches simulates these, instead of refer() and grant(): all that one of them
    // demands for a reference to a line. `again`: the reference is that of the call before.
    void supply(std::uint32_t core, const Reference& reference, std::span<const Demand> demands,
                bool again, std::uint64_t* counts);
    // The first caches of fetches and of data that FirstCaches has simulated until now, if it gives
    // any; they are the hierarchy's then.
    void take(std::uint32_t core, std::unique_ptr<CacheInstance> (&given)[2]);
    // The caches of a core are not needed any more, where each thread has its own.
    void forget(std::uint32_t core);

  private:
    struct Core {
        std::vector<CacheInstance*> caches;  // by index in Machine::caches
        std::vector<std::unique_ptr<CacheInstance>> own;
    };
    // What is asked of a cache again and again.
    struct Rules {
        std::uint32_t next;   // the cache below, or kMemory
        std::uint64_t stays;  // flags that a line has still when it comes from another cache
        bool is_coherent;     // one of a core that holds data
        bool is_exclusive;
        bool writes_back;
        bool allocates;    // for a write that misses
        bool gives_clean;  // what it loses to the cache below
    };
    // One line of a reference, on its way.
    struct Request {
        Core& core;
        std::uint32_t number;  // of the core
        const Reference& reference;
        std::span<const Wish> wishes;  // of the reference
        std::uint64_t line;
        std::uint64_t* counts;
        bool prefetch = false;
        bool is_coherent = false;  // the other cores have been asked
        bool lost = false;         // to another core's write, before
    };
    struct Trigger {
        std::uint32_t cache;
        bool hit, first;
    };

    // Of the first cache of fetches or of data.
    struct Quick {
        bool is_possible = false;
        bool sees_hits = false;  // the policy: it must not be told twice of one
        bool writes_back = false;
        bool asks = false;          // others, before it writes what is not modified
        std::uint64_t written = 0;  // flags of what it has written
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

    // The line's flags where a hit changes nothing but the line's place, or null.
    static std::uint64_t* hits_quickly(CacheInstance& cache, std::uint64_t line,
                                       const Reference& reference) {
        std::uint64_t* const entry = cache.lines.touch(line & kMostLine, reference.pc);
        return entry && !(*entry & (kPrefetched | kWatched)) ? entry : nullptr;
    }
    // The same, and nothing changes.
    static std::uint64_t* finds_quickly(CacheInstance& cache, std::uint64_t line) {
        std::uint64_t* const entry = cache.lines.find(line & kMostLine);
        return entry && !(*entry & (kPrefetched | kWatched)) ? entry : nullptr;
    }
    void refer_to_line(Request& request);
    // Makes the line available above the cache; returns the flags that stay with it if it comes out
    // of an exclusive one, else 0.
    std::uint64_t bring(Request& request, std::uint32_t cache);
    void write(Request& request, std::uint32_t cache);
    void put(Request& request, std::uint32_t cache, std::uint64_t flags);
    // For what has been put into a cache of the core with that number.
    void make_room(Request& request, std::uint32_t number, std::uint32_t cache,
                   CacheArray::Line gone);
    void back_invalidate(Request& request, std::uint32_t number, std::uint32_t cache,
                         CacheArray::Line& gone);
    bool hand_down(Request& request, std::uint32_t number, std::uint32_t cache, std::uint64_t line,
                   std::uint64_t flags);
    void observe(Request& request, std::uint32_t cache, std::uint64_t* entry);
    void prefetch_behind(Request& request);
    // The prefetchers of the first cache, behind a hit.
    template <typename Counts>
    void prefetch_behind_hit(std::uint32_t core, const Reference& reference, std::uint64_t line,
                             std::span<const Wish> wishes, const Counts& counts) {
        const Prefetcher::Reference hit{.line = line,
                                        .address = reference.address,
                                        .pc = reference.pc,
                                        .hit = true,
                                        .first = false};
        const std::uint32_t cache = first_[reference.kind != Kind::kFetch];
        const auto& prefetchers = cores_[core]->caches[cache]->prefetchers;
        for (std::uint32_t i = 0; i < prefetchers.size(); ++i) {
            want(prefetchers[i].get(), i, hit, wishes);
            if (!wanted_.all().empty()) prefetch_wanted(core, reference, line, counts());
        }
    }
    // Asks the prefetcher with that index behind a reference; null: it is FrontEnd's. The answer is
    // in wanted_.
    void want(Prefetcher* prefetcher, std::uint32_t number, const Prefetcher::Reference& reference,
              std::span<const Wish> wishes);
    void prefetch_wanted(std::uint32_t core, const Reference& reference, std::uint64_t line,
                         std::uint64_t* counts);
    void prefetch(Request& behind, std::uint32_t cache, std::uint64_t line);
    void prefetch_for_program(Request& request, std::uint32_t level);
    // Of all cores; `stays`: it is only written back.
    void flush(Request& request, bool stays);

    // Of a core that refers to something.
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
    // Whether one of a core's own caches, other than `left`, has the line.
    bool is_kept(std::uint32_t core, std::uint64_t line, std::uint32_t left = kMemory);
    bool may_prefetch(Request& request, std::uint32_t cache);
    bool may_hand_down(const Request& request, std::uint32_t from, std::uint32_t to,
                       std::uint64_t line);
    void drop_fetched(const Request& request);

    // Adds what nobody can predict without a branch.
    static void count(std::uint64_t* counts, std::uint32_t column, bool happens = true) {
        if (column != Columns::kNone) counts[column] += happens;
    }

    const Machine& machine_;
    const Columns& columns_;
    unsigned line_shift_;
    LineWords words_;
    bool coherent_;
    // Only one core has referred to anything: what its own caches have, it has exclusive, or
    // modified if one of the copies is kModified, and coherence_ and sharing_ are empty.
    bool is_alone_;
    std::uint32_t only_ = Coherence::kNobody;
    std::vector<Rules> rules_;              // by cache
    std::uint32_t first_[2];                // cache of fetches and of data
    std::vector<std::uint32_t> kept_in_;    // those that are coherent
    std::vector<std::uint32_t> clustered_;  // those of clusters that hold data
    Quick quick_[2];
    std::vector<std::unique_ptr<Core>> cores_;
    std::vector<std::vector<std::unique_ptr<CacheInstance>>>
        shared_;  // by cache: by cluster, or one
    Coherence coherence_;
    Sharing sharing_;
    std::vector<Trigger> triggers_;
    std::uint64_t missed_ = 0;  // by the reference: caches, as bits
    bool lost_first_ = false;
    Prefetcher::Lines wanted_;
};

}  // namespace machine
