// The part of hierarchy.h that keeps the caches of cores and clusters coherent.
#include "plugins/machine/hierarchy.h"

#include <bit>

namespace machine {

bool Hierarchy::is_kept(std::uint32_t core, std::uint64_t line, std::uint32_t left) {
    for (const std::uint32_t cache : kept_in_)
        if (cache != left && cores_[core]->caches[cache]->lines.find(line)) return true;
    return false;
}

// For the first core, only remembers it. For the second core, enters the lines of the first core's
// caches into the tables.
void Hierarchy::enter_new(std::uint32_t core) {
    if (only_ == Coherence::kNobody) {
        only_ = core;
        return;
    }
    is_alone_ = false;
    for (const std::uint32_t cache : kept_in_)
        cores_[only_]->caches[cache]->lines.each([this](const CacheArray::Line& line) {
            coherence_.read(only_, line.number, true);
            if (line.flags & kModified) coherence_.write(only_, line.number);
        });
}

// A core's own caches lose a copy of a line with these flags. `left` has already lost it, and is
// not asked.
void Hierarchy::lose(std::uint32_t core, std::uint64_t line, std::uint64_t flags,
                     std::uint32_t left) {
    if (is_alone_) return leave_to_others(core, line, flags);
    if (!is_kept(core, line, left)) coherence_.drop(core, line);
}

// With a single core, one of its copies must remember that it has written the line.
void Hierarchy::leave_to_others(std::uint32_t core, std::uint64_t line, std::uint64_t flags) {
    if (!(flags & kModified)) return;
    for (const std::uint32_t cache : kept_in_)
        if (std::uint64_t* const entry = cores_[core]->caches[cache]->lines.find(line))
            *entry |= kModified;
}

// Calls `visit(cache, cluster, entry)` for the line's entries in other clusters' caches.
template <typename Visit>
void Hierarchy::each_copy_of_clusters(const Request& request, const Visit& visit) {
    if (machine_.clusters == 1) return;
    const std::uint32_t own = machine_.cluster_of(request.number);
    for (const std::uint32_t cache : clustered_)
        for (std::uint32_t cluster = 0; cluster < machine_.clusters; ++cluster)
            if (cluster != own)
                if (std::uint64_t* const entry = shared_[cache][cluster]->lines.find(request.line))
                    visit(cache, cluster, entry);
}

void Hierarchy::ask_to_read(Request& request) {
    request.is_coherent = true;
    if (is_alone_) return;
    bool alone = true, supplied = false;
    each_copy_of_clusters(request,
                          [&](std::uint32_t, std::uint32_t, std::uint64_t*) { alone = false; });
    const Coherence::Read read = coherence_.read(request.number, request.line, alone);
    if (read.had) return;
    if (read.supplier != Coherence::kNobody) {
        supplied = true;
        release(request, read.supplier, read.cleans);
    }
    // After the cores, which may have written data back to these caches.
    each_copy_of_clusters(
        request, [&](std::uint32_t cache, std::uint32_t cluster, std::uint64_t* entry) {
            if (!(*entry & kDirty)) return;
            supplied = true;
            *entry &= ~std::uint64_t{kDirty};
            count(request.counts, columns_.caches[cache].write_backs);
            hand_down(request, cluster * machine_.cores_of_cluster(), cache, request.line, kDirty);
        });
    if (supplied) count(request.counts, columns_.transfers);
    note_return(request);
}

// The core no longer has the line exclusively. `cleans`: it writes the line back.
void Hierarchy::release(Request& request, std::uint32_t core, bool cleans) {
    std::uint64_t flags = 0;
    for (const std::uint32_t cache : kept_in_)
        if (std::uint64_t* const entry = cores_[core]->caches[cache]->lines.find(request.line)) {
            if (cleans && (*entry & ~flags & kDirty))
                count(request.counts, columns_.caches[cache].write_backs);
            flags |= *entry;
            *entry &= ~std::uint64_t{kModified};
            if (cleans) *entry &= ~std::uint64_t{kDirty};
        }
    if (cleans && (flags & kDirty)) hand_down(request, core, kept_in_.back(), request.line, kDirty);
}

void Hierarchy::ask_to_write(Request& request) {
    request.is_coherent = true;
    if (is_alone_) {
        if (!machine_.directory && !is_kept(request.number, request.line))
            request.counts[columns_.invalidations_sent] += machine_.cores - 1;
        return;
    }
    const State before = coherence_.state(request.number, request.line);
    if (before == State::kInvalid || before == State::kShared || before == State::kOwned) {
        bool supplied = false;
        each_copy_of_clusters(
            request, [&](std::uint32_t cache, std::uint32_t cluster, const std::uint64_t* entry) {
                supplied = supplied || (*entry & kDirty);
                if (*entry & kPrefetched) count(request.counts, columns_.caches[cache].useless);
                shared_[cache][cluster]->lines.remove(request.line);
                count(request.counts, columns_.invalidations_received);
            });
        const Coherence::Write write = coherence_.write(request.number, request.line);
        supplied = supplied || write.supplier != Coherence::kNobody;
        if (before != State::kInvalid)
            count(request.counts, columns_.upgrades);
        else if (supplied)
            count(request.counts, columns_.transfers);
        request.counts[columns_.invalidations_sent] +=
            machine_.directory ? static_cast<std::uint64_t>(std::popcount(write.losers))
                               : machine_.cores - 1;
        for (std::uint64_t left = write.losers; left != 0; left &= left - 1)
            invalidate(request, static_cast<std::uint32_t>(std::countr_zero(left)));
        if (before == State::kInvalid) note_return(request);
    } else if (before == State::kExclusive) {
        coherence_.write(request.number, request.line);
    }
    if (sharing_.is_watched(request.line))
        sharing_.written(request.number, request.line, words(request));
}

void Hierarchy::invalidate(Request& request, std::uint32_t core) {
    for (const std::uint32_t cache : kept_in_) {
        const std::uint64_t flags = cores_[core]->caches[cache]->lines.remove(request.line);
        if (flags & kPrefetched) count(request.counts, columns_.caches[cache].useless);
    }
    count(request.counts, columns_.invalidations_received);
    sharing_.lost(core, request.line);
}

std::uint64_t Hierarchy::words(const Request& request) const {
    const std::uint64_t begin = request.reference.address & ~std::uint64_t{machine_.line - 1};
    const std::uint64_t first = request.reference.address - begin;
    const std::uint64_t bytes = std::min(request.reference.bytes, machine_.line);
    if ((begin >> line_shift_ & kMostLine) == request.line)
        return words_.of(first, std::min(bytes, machine_.line - first));
    return words_.of(0, first + bytes - machine_.line);
}

// The core gets a line that it may have lost to another core's write.
void Hierarchy::note_return(Request& request) {
    const auto is_true = sharing_.found_again(request.number, request.line, words(request));
    if (!is_true) return;
    request.lost = true;
    count(request.counts, *is_true ? columns_.true_sharing : columns_.false_sharing);
}

// A prefetch takes nothing from another core, or from a dirty line in another cluster. If the line
// goes to a data cache of the core's own, the core has it from now on.
bool Hierarchy::may_prefetch(Request& request, std::uint32_t cache) {
    if (is_alone_)
        return machine_.caches[cache].of == Of::kCore || !is_kept(request.number, request.line);
    const Coherence::Holders known = coherence_.holders(request.line);
    if (known.owner != Coherence::kNobody &&
        (known.owner != request.number || machine_.caches[cache].of != Of::kCore))
        return false;
    bool alone = true, dirty = false;
    each_copy_of_clusters(request, [&](std::uint32_t, std::uint32_t, const std::uint64_t* entry) {
        alone = false;
        dirty = dirty || (*entry & kDirty);
    });
    if (dirty) return false;
    if (known.have(request.number)) return true;
    bool comes = rules_[cache].is_coherent;
    for (std::uint32_t below = rules_[cache].next; !comes && below != kMemory;
         below = rules_[below].next) {
        // The line comes from an instruction cache, and no cache below is asked.
        if (request.core.caches[below]->lines.find(request.line)) break;
        comes = rules_[below].is_coherent && !rules_[below].is_exclusive;
    }
    if (comes) {
        coherence_.read(request.number, request.line, alone);
        sharing_.found_again(request.number, request.line, 0);
    }
    return true;
}

// A line that leaves an instruction cache was not kept coherent. If it goes to an exclusive cache
// of the core that also holds data, the rules of a prefetch apply.
bool Hierarchy::may_hand_down(const Request& request, std::uint32_t from, std::uint32_t to,
                              std::uint64_t line) {
    if (!rules_[to].is_coherent || rules_[from].is_coherent) return true;
    Request given = request;
    given.line = line;
    return may_prefetch(given, to);
}

// If a fetch took the line out of an exclusive cache of the core, or past it, only an instruction
// cache has it now.
void Hierarchy::drop_fetched(const Request& request) {
    if (coherent_ && !is_alone_ && request.reference.kind == Kind::kFetch &&
        first_[0] != first_[1] && !is_kept(request.number, request.line))
        coherence_.drop(request.number, request.line);
}

}  // namespace machine
