// Simulates the first caches of cores ahead of the caches below them, possibly on another thread.
// This is exact if nothing below changes the content of the first caches: while only one core has
// referred to anything, and always if cores are not coherent.
//
// Hierarchy then processes the demands of first caches in place of the program's references. Not
// thread-safe.
#pragma once

#include "plugins/machine/cache_instance.h"
#include "plugins/machine/columns.h"
#include "plugins/machine/machine.h"
#include "plugins/machine/reference.h"
#include "plugins/machine/steps.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace machine {

class FirstCaches {
  public:
    // True if the machine's first caches can be simulated separately.
    static bool are_independent(const Machine& machine);

    // Both arguments must live longer.
    FirstCaches(const Machine& machine, const Columns& columns);
    FirstCaches(const FirstCaches&) = delete;
    FirstCaches& operator=(const FirstCaches&) = delete;

    // Begins a part of the core with this many records. `operates`: some are operations on lines.
    // Returns true if the core's first caches are simulated here. If not, Hierarchy simulates all
    // caches from now on, and `steps` hand it the first ones.
    bool begin(std::uint32_t core, std::size_t records, bool operates, Steps& steps);
    // Takes the next reference of the part, with the number of its record.
    void refer(const Reference& reference, std::uint32_t record, Steps& steps) {
        const std::uint64_t bytes = std::min(reference.bytes, machine_.line);
        const std::uint64_t first = reference.address >> line_shift_;
        const std::uint64_t last = (reference.address + bytes - 1) >> line_shift_;
        for (std::uint64_t line = first; line <= last; ++line)
            refer_to_line({reference, line & kMostLine, record}, steps);
    }
    // Frees the caches of a core, if each thread has its own core.
    void forget(std::uint32_t core) { cores_.erase(core); }

  private:
    struct Core {
        std::unique_ptr<CacheInstance> caches[2];  // of fetches and of data
        std::uint32_t missed[2] = {kNone, kNone};  // the last record that missed
    };
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Touch {
        const Reference& reference;
        std::uint64_t line;
        std::uint32_t record;

        bool data() const { return reference.kind != Kind::kFetch; }
    };
    Referrer by(const Touch& touch) const {
        const Reference& reference = touch.reference;
        return {reference.pc, reference.writes ? Kind::kWrite : reference.kind, number_};
    }

    void refer_to_line(const Touch& touch, Steps& steps) {
        CacheInstance& cache = *core_->caches[touch.data()];
        std::uint64_t* const entry = cache.lines.touch(touch.line, by(touch));
        if (!entry || (*entry & kPrefetched) || cache.sees_hits || cache.kinds)
            return refer_further(touch, entry, steps);
        *entry |= touch.reference.writes ? written_ : 0;
    }
    void refer_further(const Touch& touch, std::uint64_t* entry, Steps& steps);
    void prefetch(const Touch& touch, bool hit, bool first, Steps& steps);

    const Machine& machine_;
    const Columns& columns_;
    const unsigned line_shift_;
    const std::uint32_t first_[2];  // indices in Machine::caches
    const std::uint64_t written_;   // flags of a line that has been written
    bool are_here_ = true;
    std::optional<std::uint32_t> only_;  // the only core so far, if cores are coherent
    std::uint32_t number_ = 0;           // of the part's core
    Core* core_ = nullptr;
    std::map<std::uint32_t, Core> cores_;
    Prefetcher::Lines wanted_;
};

}  // namespace machine
