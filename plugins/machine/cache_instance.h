// One cache during a run: its lines, its prefetchers, and the state to classify misses and
// prefetches.
#pragma once

#include "plugins/machine/cache_array.h"
#include "plugins/machine/columns.h"
#include "plugins/machine/describe.h"
#include "plugins/machine/machine.h"
#include "plugins/machine/miss_kinds.h"
#include "plugins/machine/policy_library.h"
#include "plugins/machine/reference.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace machine {

struct CacheInstance {
    // `number` is the index of the cache. Throws std::bad_alloc, and std::runtime_error if a
    // library of the user is unusable.
    CacheInstance(const Machine& machine, std::uint32_t number)
        : lines(machine.caches[number].sets(machine.line), machine.caches[number].ways,
                machine.caches[number].hash, machine.caches[number].replacement,
                machine.caches[number].late != 0, place(machine, machine.caches[number])),
          late(machine.caches[number].late) {
        const Cache& cache = machine.caches[number];
        for (const Prefetch& prefetch : cache.prefetch) {
            const bool is_own = !is_of_front_end(machine, number, prefetch);
            prefetchers.push_back(is_own ? make_prefetcher(prefetch, place(machine, cache))
                                         : nullptr);
            if (is_own && prefetchers.back()->watches()) lines.watch(*prefetchers.back());
            sees_hits = sees_hits || (is_own && machine::sees_hits(prefetch));
            sees_all = sees_all || sees_hits || !is_own;
        }
        if (!prefetchers.empty()) replaced_.resize(lines.lines());
        if (std::has_single_bit(replaced_.size())) replaced_mask_ = replaced_.size() - 1;
        if (cache.classify) kinds.emplace(lines.lines());
    }

    CacheArray lines;
    std::vector<std::unique_ptr<Prefetcher>> prefetchers;  // null for those that FrontEnd simulates
    bool sees_hits = false;                                // one of the prefetchers needs hits
    bool sees_all = false;                                 // one of the prefetchers, FrontEnd's
                                                           // included
    std::optional<MissKinds> kinds;
    std::uint32_t late;  // see Cache::late

    // A reference by the program, for one line.
    struct Observed {
        std::uint64_t line;
        Kind kind;
        bool is_counted;  // an earlier line of the reference has missed
        bool is_lost;     // another core's write has taken the line from this core
        std::uint32_t core;
        std::uint64_t executed;  // see Reference::executed
    };
    // Whether and how to call the prefetchers.
    struct Trigger {
        bool is_due = false;
        bool first = false;  // first reference since the line was prefetched
    };
    // Takes a reference to the line. `entry` is its entry, or null for a miss. Calls
    // `count(column)` for each event.
    template <typename Count>
    Trigger observe(const Observed& seen, std::uint64_t* entry, const Columns::OfCache& columns,
                    const Count& count) {
        const bool first = entry && (*entry & kPrefetched);
        if (first) {
            *entry &= ~std::uint64_t{kPrefetched};
            count(columns.useful);
            if (is_late(seen, entry)) count(columns.late);
        }
        if (!entry && !seen.is_counted) count(columns.misses[static_cast<std::size_t>(seen.kind)]);
        if (kinds) {
            const MissKind kind = kinds->refer(seen.line);
            if (!entry) count(column_of(columns, kind, seen.is_lost));
        }
        if (prefetchers.empty()) return {};
        if (!entry) {
            std::uint64_t& replaced = this->replaced(seen.line);
            if (replaced == seen.line + 1) {
                replaced = 0;
                count(columns.evicting);
            }
        }
        return {.is_due = !entry || first || sees_all, .first = first};
    }
    // Inserts a line for a prefetcher, after the reference that caused it.
    CacheArray::Inserted prefetch(std::uint64_t line, std::uint64_t flags, const Referrer& by,
                                  std::uint64_t executed) {
        const auto inserted = lines.insert(line, kPrefetched | flags, by, true);
        if (!inserted.entry) return inserted;
        if (!replaced_.empty()) {
            std::uint64_t& before = replaced(line);
            if (before == line + 1) before = 0;
        }
        if (late != 0) lines.stamp(inserted.entry) = {executed, by.core};
        if (replaced_.empty()) return inserted;
        if (inserted.gone.flags != 0) replaced(inserted.gone.number) = inserted.gone.number + 1;
        return inserted;
    }

  private:
    // A bypassed line would be missing in an inclusive cache, and for coherence.
    static PolicyPlace place(const Machine& machine, const Cache& cache) {
        const bool is_coherent = machine.protocol != Protocol::kNone && cache.of == Of::kCore &&
                                 cache.holds != Holds::kInstructions;
        return {.name = cache.name,
                .level = cache.level,
                .line_bytes = machine.line,
                .may_bypass = cache.inclusion != Inclusion::kInclusive && !is_coherent};
    }
    // Measured by the core that prefetched the line, because the progress of other cores since then
    // is unknown. The time can be slightly before the prefetch if two threads take turns on a core
    // within a block.
    bool is_late(const Observed& seen, const std::uint64_t* entry) {
        if (late == 0) return false;
        const CacheArray::Stamp& prefetched = lines.stamp(entry);
        return prefetched.core == seen.core &&
               static_cast<std::int64_t>(seen.executed - prefetched.time) <=
                   static_cast<std::int64_t>(late);
    }
    static std::uint32_t column_of(const Columns::OfCache& columns, MissKind kind, bool is_lost) {
        if (kind == MissKind::kCold) return columns.cold;
        if (is_lost) return columns.coherence;
        return kind == MissKind::kCapacity ? columns.capacity : columns.conflict;
    }
    // The line that a prefetch replaced, plus 1. Different lines share entries.
    std::uint64_t& replaced(std::uint64_t line) {
        return replaced_[replaced_mask_ != 0 ? line & replaced_mask_ : line % replaced_.size()];
    }

    std::vector<std::uint64_t> replaced_;
    std::uint64_t replaced_mask_ = 0;  // 0 if the number of entries is no power of two
};

}  // namespace machine
