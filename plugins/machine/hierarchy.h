// A whole machine: what each reference does to its caches and translation buffers.
//
// docs/machines.md says the rules, in the order in which they apply. Not thread-safe.
#pragma once

#include "plugins/machine/cache_array.h"
#include "plugins/machine/coherence.h"
#include "plugins/machine/columns.h"
#include "plugins/machine/machine.h"
#include "plugins/machine/miss_kinds.h"
#include "plugins/machine/page_sizes.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/sharing.h"
#include "plugins/machine/translation.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace machine {

struct Reference {
    Kind kind = Kind::kRead;  // what its misses count as
    bool writes = false;      // kWrite, or a read that writes, too
    std::uint32_t bytes = 1;  // not 0; taken as a line's where it is more
    std::uint64_t address = 0;
    std::uint64_t pc = 0;
    // How many instructions its core has executed, this one among them; for Machine::tells_late().
    std::uint64_t executed = 0;
};

class Hierarchy {
  public:
    // Both stay their owner's, and there. Throws std::bad_alloc, and std::runtime_error if a
    // library of the user's own is unusable.
    Hierarchy(const Machine& machine, const Columns& columns);
    Hierarchy(const Hierarchy&) = delete;
    Hierarchy& operator=(const Hierarchy&) = delete;

    // A reference by a core, which is below Machine::cores, or any number if that is 0. Adds to
    // `counts`, which has an element for each column, what happens; Ir, Dr and Dw are not counted.
    void refer(std::uint32_t core, const Reference& reference, std::uint64_t* counts);
    // Whether a reference hits in the first cache and changes nothing that is counted now or later
    // but what a hit changes there, which is then done: refer() need not be called. `counts` is
    // called where prefetchers want something: it returns what refer() would be given.
    template <typename Counts>
    bool refer_quickly(std::uint32_t core, const Reference& reference, const Counts& counts) {
        const Quick& quick = quick_[reference.kind != Kind::kFetch];
        if (!quick.is_possible || core >= cores_.size() || !cores_[core]) return false;
        const std::uint64_t end = reference.address + std::min(reference.bytes, machine_.line) - 1;
        const std::uint64_t line = reference.address >> line_shift_;
        Core& on = *cores_[core];
        Instance& first = *on.caches[quick.cache];
        if (end >> line_shift_ != line) {
            if (reference.writes || !first.see_hits.empty()) return false;
            const RecentPage& page = on.recent_pages[quick.page];
            if (quick.translates && !(page.has(reference.address) && page.has(end))) return false;
            const std::uint64_t second = (end >> line_shift_) & kMostLine;
            const std::uint64_t* const entry = first.lines.find(second);
            if (!entry || (*entry & (kPrefetched | kWatched)) ||
                !hits_quickly(first, line, reference))
                return false;
            first.lines.touch(second, reference.pc);
            return true;
        }
        if (quick.translates && !on.recent_pages[quick.page].has(reference.address) &&
            !translate_quickly(on, reference))
            return false;
        std::uint64_t* const entry = hits_quickly(first, line, reference);
        if (!entry) return false;
        if (reference.writes) {
            if (!quick.writes_back) return false;
            if (quick.asks && !(*entry & kModified)) return false;
            *entry |= kDirty;
        }
        for (Prefetcher* const prefetcher : first.see_hits) {
            wanted_.clear();
            prefetcher->reference({.line = line & kMostLine,
                                   .address = reference.address,
                                   .pc = reference.pc,
                                   .hit = true,
                                   .first = false},
                                  wanted_);
            if (!wanted_.all().empty())
                prefetch_wanted(core, reference, line & kMostLine, counts());
        }
        return true;
    }
    // The caches of a core are not needed any more, where each thread has its own.
    void forget(std::uint32_t core);
    // Where Machine::page is 0: the pages of the core's references from now on, until the next call
    // or forget(); pages of 4K before. To be called again when they have changed.
    void translate_by(std::uint32_t core, PageSizes& sizes);

  private:
    static constexpr std::uint32_t kMemory = UINT32_MAX;
    static constexpr std::uint64_t kMostLine = (std::uint64_t{1} << 56) - 1;

    struct Instance {
        Instance(const Machine& machine, const Cache& cache);

        CacheArray lines;
        std::vector<std::unique_ptr<Prefetcher>> prefetchers;
        std::vector<Prefetcher*> see_hits;    // of these, those that want to know of hits
        std::vector<std::uint64_t> replaced;  // by prefetches: line + 1, at line % size
        std::optional<MissKinds> kinds;
    };
    struct Core {
        std::vector<Instance*> caches;  // by index in Machine::caches
        std::vector<CacheArray> tlbs;   // by index in Machine::tlbs
        std::vector<std::unique_ptr<Instance>> own;
        PageSizes* page_sizes = nullptr;
        RecentPage recent_pages[2];  // of fetches and of data
    };
    // One line of a reference, on its way.
    struct Request {
        Core& core;
        std::uint32_t number;  // of the core
        const Reference& reference;
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
        bool translates = false;
        bool writes_back = false;
        bool asks = false;                  // others, before it writes what is not modified
        std::uint32_t cache = 0, page = 0;  // the latter in Core::recent_pages
    };

    Quick quick(bool data) const;
    Core& core(std::uint32_t number);
    std::uint32_t cluster_of(std::uint32_t core) const;
    bool is_above(std::uint32_t upper, std::uint32_t lower) const;

    // The line's flags where a hit changes nothing but the line's place, or null.
    static std::uint64_t* hits_quickly(Instance& cache, std::uint64_t line,
                                       const Reference& reference) {
        std::uint64_t* const entry = cache.lines.touch(line & kMostLine, reference.pc);
        return entry && !(*entry & (kPrefetched | kWatched)) ? entry : nullptr;
    }
    // Whether its page is in the first buffer, where a hit changes what it changes.
    bool translate_quickly(Core& core, const Reference& reference);
    void translate(Core& core, const Reference& reference, std::uint64_t address,
                   std::uint64_t* counts);
    void refer_to_line(Request& request);
    // Makes the line available above the cache; returns kDirty if it comes dirty out of an
    // exclusive one, else 0.
    std::uint64_t bring(Request& request, std::uint32_t cache);
    void write(Request& request, std::uint32_t cache);
    void put(Request& request, std::uint32_t cache, std::uint64_t flags);
    // For what has been put into a cache of the core with that number.
    void make_room(Request& request, std::uint32_t number, std::uint32_t cache,
                   CacheArray::Line gone);
    void back_invalidate(Request& request, std::uint32_t number, std::uint32_t cache,
                         CacheArray::Line& gone);
    void hand_down(Request& request, std::uint32_t number, std::uint32_t cache, std::uint64_t line,
                   std::uint64_t flags);
    void observe(Request& request, std::uint32_t cache, std::uint64_t* entry);
    // Of a line that was prefetched, and is referred to for the first time.
    bool is_late(const Request& request, std::uint32_t cache, const std::uint64_t* entry) const;
    std::uint32_t column_of(const Request& request, std::uint32_t cache, MissKind kind) const;
    void prefetch_behind(Request& request);
    // What the first cache's prefetchers want behind a hit.
    void prefetch_wanted(std::uint32_t core, const Reference& reference, std::uint64_t line,
                         std::uint64_t* counts);
    void prefetch(Request& behind, std::uint32_t cache, std::uint64_t line);

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

    static void count(std::uint64_t* counts, std::uint32_t column) {
        if (column != Columns::kNone) ++counts[column];
    }

    const Machine& machine_;
    const Columns& columns_;
    unsigned line_shift_;
    bool coherent_;
    std::vector<std::uint32_t> next_;       // by cache: the one below, or kMemory
    std::uint32_t first_[2];                // cache of fetches and of data
    std::vector<bool> is_coherent_;         // by cache: those of cores that hold data
    std::vector<std::uint32_t> kept_in_;    // these caches
    std::vector<std::uint32_t> clustered_;  // those of clusters that hold data
    Quick quick_[2];
    const Translation translation_;
    std::vector<std::unique_ptr<Core>> cores_;
    std::vector<std::vector<std::unique_ptr<Instance>>> shared_;  // by cache: by cluster, or one
    Coherence coherence_;
    Sharing sharing_;
    std::vector<Trigger> triggers_;
    std::uint64_t missed_ = 0;  // by the reference: caches, as bits
    Prefetcher::Lines wanted_;
};

}  // namespace machine
