// One cache while the program runs: its lines, its prefetchers, and what is kept to tell misses and
// prefetches apart.
#pragma once

#include "plugins/machine/cache_array.h"
#include "plugins/machine/columns.h"
#include "plugins/machine/describe.h"
#include "plugins/machine/machine.h"
#include "plugins/machine/miss_kinds.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/reference.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace machine {

struct CacheInstance {
    // Of the cache with that index. Throws std::bad_alloc, and std::runtime_error if a library of
    // the user's own is unusable.
    CacheInstance(const Machine& machine, std::uint32_t number)
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

    CacheArray lines;
    std::vector<std::unique_ptr<Prefetcher>> prefetchers;  // null: FrontEnd's
    bool sees_hits = false;                                // one of these wants to know of hits
    bool sees_all = false;                                 // one of these, or of FrontEnd's
    std::optional<MissKinds> kinds;
    std::uint32_t late;  // as Cache::late

    // What the program refers to, of one line.
    struct Observed {
        std::uint64_t line;
        Kind kind;
        bool is_counted;  // an earlier line of the reference has missed
        bool is_lost;     // the core had the line until another one wrote it
        std::uint32_t core;
        std::uint64_t executed;  // as Reference::executed
    };
    // What the prefetchers are to be told.
    struct Trigger {
        bool is_due = false;
        bool first = false;  // since the line was prefetched
    };
    // Of a reference to the line, which has `entry`, or null: it misses. Calls
    // `count(column)` for what is counted.
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
    // Puts in what a prefetcher has asked for, behind a reference like that.
    CacheArray::Inserted prefetch(std::uint64_t line, std::uint64_t flags, std::uint64_t pc,
                                  std::uint32_t core, std::uint64_t executed) {
        std::uint64_t& before = replaced(line);
        if (before == line + 1) before = 0;
        const auto inserted = lines.insert(line, kPrefetched | flags, pc, true);
        if (late != 0) lines.stamp(inserted.entry) = {executed, core};
        if (inserted.gone.flags != 0) replaced(inserted.gone.number) = inserted.gone.number + 1;
        return inserted;
    }

  private:
    // By the core that has prefetched it: how far another one has got since, nobody knows. The time
    // can be a little before that of the prefetch, where two threads take turns on a core within a
    // block.
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
    // What a prefetch has replaced there: that line + 1, or another's.
    std::uint64_t& replaced(std::uint64_t line) {
        return replaced_[replaced_mask_ != 0 ? line & replaced_mask_ : line % replaced_.size()];
    }

    std::vector<std::uint64_t> replaced_;
    std::uint64_t replaced_mask_ = 0;  // where their number is a power of two
};

}  // namespace machine
