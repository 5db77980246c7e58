// The inner loop of the simulation, for one instruction set.
//
// Only the files kernel_*.cpp include this header. Each is compiled for its own instruction set and
// has its own `Ways` in an unnamed namespace. No code for a newer processor can therefore get into
// functions that are shared at link time.
#pragma once

#include "plugins/cache/tables.h"

#include <algorithm>

namespace cache {

// True if any of the (at most two) lines of the reference is missing. Both become the most recent
// of their sets, the lower one first. Most instructions that reach into a second line follow one
// that used the first line, which is then the most recent. The code tests for this, and not for the
// end of the line, because the processor predicts this branch well.
template <class Ways>
inline bool missing(const Level& level, std::uint64_t address, std::uint64_t last_byte) {
    const std::uint64_t first = address >> level.line_shift;
    const std::uint64_t last = (address + last_byte) >> level.line_shift;
    bool missed = false;
    const bool crossing = first != last;
    const bool moves = *level.set(first) != first;
    if (static_cast<unsigned>(crossing) & static_cast<unsigned>(moves)) [[unlikely]]
        missed = !Ways::touch(level.set(first), level.ways, first);
    missed |= !Ways::touch(level.set(last), level.ways, last);
    return missed;
}

// Looks up a whole batch in level 1, then its misses in LL in the same order. The results stay the
// same, and the tags of LL, which is large, arrive in the meantime.
template <class Ways>
void simulate(const Tables& tables, const trace_record_t* records, std::size_t count) {
    constexpr std::size_t kBatch = 64;
    const trace_record_t* missed[kBatch];
    for (const trace_record_t* const end = records + count; records != end;) {
        const trace_record_t* const stop =
            records + std::min<std::size_t>(kBatch, static_cast<std::size_t>(end - records));
        std::size_t misses = 0;
        for (; records != stop; ++records) {
            const SiteCode code = tables.codes[records->site];
            if (code.target() == SiteCode::kCount) {
                VariableCounts& counts = tables.variable[tables.tallies[records->site].l1_misses];
                counts.references += records->value;
                counts.ended_early += records->aux;
                continue;
            }
            missed[misses] = records;
            if (tables.missed[code.target()] ||
                missing<Ways>(tables.level1[code.target()], records->value, code.last_byte())) {
                tables.ll.prefetch(records->value);
                ++misses;
            }
        }
        for (std::size_t i = 0; i < misses; ++i) {
            Tally& tally = tables.tallies[missed[i]->site];
            if (++tally.l1_misses == 0) [[unlikely]]
                tables.carry(tables.owner, &tally.l1_misses);
            if (missing<Ways>(tables.ll, missed[i]->value,
                              tables.codes[missed[i]->site].last_byte()) &&
                ++tally.ll_misses == 0) [[unlikely]]
                tables.carry(tables.owner, &tally.ll_misses);
        }
    }
}

}  // namespace cache
