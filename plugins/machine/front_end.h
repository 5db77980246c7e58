// Processes references before they come to caches: finds the references that the caches need to
// see, the requests of first caches' stride prefetchers, and the misses of translation buffers. The
// results depend on no other core and on no cache, so this can run ahead on another thread.
//
// References come in parts. All references of a part belong to one core. Not thread-safe.
#pragma once

#include "plugins/machine/coherence.h"
#include "plugins/machine/columns.h"
#include "plugins/machine/machine.h"
#include "plugins/machine/needed_records.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/reference.h"
#include "plugins/machine/steps.h"
#include "plugins/machine/translation.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

namespace machine {

class FrontEnd {
  public:
    // Both arguments must live longer.
    FrontEnd(const Machine& machine, const Columns& columns);
    FrontEnd(const FrontEnd&) = delete;
    FrontEnd& operator=(const FrontEnd&) = delete;

    // False if there is nothing to do. The caches, or FirstCaches, then need to see all references.
    bool is_useful() const;
    // Frees the state of a core, if each thread has its own core.
    void forget(std::uint32_t core);

    // Begins a part of the core with at most this many records. `sees_all`: the caches need to see
    // all references, because other operations come between them.
    void begin(std::uint32_t core, std::size_t records, bool sees_all = false);
    // Takes the next reference of the part, with the number of its record.
    void add(const Reference& reference, std::uint32_t record) {
        // Writes both the first and the last line, and drops the second entry if the lines are
        // equal. This needs no branch.
        const std::uint64_t bytes = std::min(reference.bytes, machine_.line);
        const std::uint64_t last = (reference.address + bytes - 1) >> line_shift_;
        const bool crosses = last != reference.address >> line_shift_;
        const std::uint64_t end = last << line_shift_;
        if (reference.kind == Kind::kFetch) {
            if (last == fetched_ && !crosses) return;
            fetched_ = skips_repeated_ ? last : kNoLine;
        }
        Touch*& next = next_[reference.kind != Kind::kFetch];
        next[0] = {reference.address,
                   reference.pc,
                   record,
                   static_cast<std::uint16_t>(crosses ? end - reference.address : bytes),
                   reference.writes,
                   crosses};
        next[1] = {end,
                   reference.pc,
                   record,
                   static_cast<std::uint16_t>(reference.address + bytes - end),
                   reference.writes,
                   crosses};
        next += 1 + crosses;
    }
    // For Machine::page 0: the page sizes for the core's references from now on, until the next
    // call or forget(). Before the first call, pages have 4K. `steps` belong to the part.
    void translate_by(std::uint32_t core, PageSizes& sizes, Steps& steps);
    // Adds the steps for all references of the part.
    void finish(Steps& steps);

  private:
    // A reference to a line.
    struct Touch {
        std::uint64_t address, pc;
        std::uint32_t record;
        std::uint16_t bytes;
        bool writes;
        bool crosses;  // the reference continues in the next line
    };
    struct Strides {
        StrideTable* table;
        std::uint32_t prefetcher;
    };
    // The way of fetches, or of references to data.
    struct Path {
        bool has_cache = false;
        CoreTranslation* translation = nullptr;  // null if no buffer holds such pages
        RecentLines* recent = nullptr;           // null if the cache needs to see all
        std::vector<Strides> strides;
        // Lines, relative to a referenced line, that the cache's prefetchers may insert after the
        // reference. The most recent lines of their sets are then unknown. `forgets_wishes`: the
        // same for lines of stride prefetchers.
        std::vector<std::uint64_t> forgets;
        bool forgets_wishes = false;
    };
    struct Core {
        Path paths[2];  // of fetches and of data
        std::vector<std::unique_ptr<RecentLines>> recent;
        bool is_one_path = false;     // both paths share recent lines or strides
        bool skips_repeated = false;  // skips a fetch of the line that was fetched last
    };

    // Translates the references that were added since the last call.
    void translate(Steps& steps);
    void translate_further(bool data, const Touch& touch, Steps& steps);
    void find_steps(bool data, Steps& steps) const;
    template <bool kForgets>
    void find_needed(const Path& path, const Touch* begin, const Touch* end,
                     std::span<const Wish> wishes, Steps& steps) const;
    void wish(const Path& path, const Touch& touch, Steps& steps) const;
    void look_at(const Path& path, const Touch& touch, Steps& steps) const;
    // The written words, as bits.
    std::uint64_t words(const Touch& touch) const {
        const std::uint64_t words =
            tells_sharing_ ? words_.of(touch.address & (machine_.line - 1), touch.bytes) : 1;
        return words & -std::uint64_t{touch.writes};
    }
    Core& core(std::uint32_t number);
    void find_recent_lines(Core& core, bool data, std::uint32_t cache);
    // The table of one prefetcher. Caches that are the same instance share it.
    StrideTable& strides(std::uint32_t core, std::uint32_t cache, std::uint32_t prefetcher);

    const Machine& machine_;
    const Columns& columns_;
    const unsigned line_shift_;
    const bool tells_sharing_;
    const LineWords words_;
    TranslationBuffers translation_;
    std::map<std::uint32_t, Core> cores_;
    // By cache, instance and prefetcher.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, StrideTable> strides_;
    static constexpr std::uint64_t kNoLine = ~std::uint64_t{0};
    Core* core_ = nullptr;                 // of the part
    bool sees_all_ = false;                // of the part
    bool skips_repeated_ = false;          // of the part
    std::uint64_t fetched_ = kNoLine;      // last line, if repeated fetches are skipped
    std::vector<Touch> touches_[2];        // of the part: fetches, and data
    Touch* next_[2] = {};                  // next free element of each
    const Touch* translated_[2] = {};      // the first element that is not translated
    std::vector<const Touch*> missed_[2];  // touches that missed the first buffers
};

}  // namespace machine
