// The first caches of cores, simulated before those below them, as a thread of its own can do:
// where nothing below changes what they hold. So it is while one core alone has referred to
// anything, and for good where cores are not coherent.
//
// Hierarchy then sees what they ask for instead of what the program refers to. Not thread-safe.
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
    // Whether the machine's can be simulated so.
    static bool are_independent(const Machine& machine);

    // Both stay their owner's, and there.
    FirstCaches(const Machine& machine, const Columns& columns);
    FirstCaches(const FirstCaches&) = delete;
    FirstCaches& operator=(const FirstCaches&) = delete;

    // A part of the core begins, with so many records; `operates`: there are operations on lines
    // among them. Whether its first caches are simulated here: else Hierarchy simulates all caches
    // from now on, and `steps` give it the first ones.
    bool begin(std::uint32_t core, std::size_t records, bool operates, Steps& steps);
    // The part's next reference, of that record.
    void refer(const Reference& reference, std::uint32_t record, Steps& steps) {
        const std::uint64_t bytes = std::min(reference.bytes, machine_.line);
        const std::uint64_t first = reference.address >> line_shift_;
        const std::uint64_t last = (reference.address + bytes - 1) >> line_shift_;
        for (std::uint64_t line = first; line <= last; ++line)
            refer_to_line({reference, line & kMostLine, record}, steps);
    }
    // Nothing of a core is needed any more, where each thread has its own.
    void forget(std::uint32_t core) { cores_.erase(core); }

  private:
    struct Core {
        std::unique_ptr<CacheInstance> caches[2];  // of fetches and of data
        std::uint32_t missed[2] = {kNone, kNone};  // the last record that did
    };
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Touch {
        const Reference& reference;
        std::uint64_t line;
        std::uint32_t record;

        bool data() const { return reference.kind != Kind::kFetch; }
    };

    void refer_to_line(const Touch& touch, Steps& steps) {
        CacheInstance& cache = *core_->caches[touch.data()];
        std::uint64_t* const entry = cache.lines.touch(touch.line, touch.reference.pc);
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
    const std::uint64_t written_;   // flags of a line that is
    bool are_here_ = true;
    std::optional<std::uint32_t> only_;  // the core, if cores are coherent
    std::uint32_t number_ = 0;           // of the part
    Core* core_ = nullptr;
    std::map<std::uint32_t, Core> cores_;
    Prefetcher::Lines wanted_;
};

}  // namespace machine
