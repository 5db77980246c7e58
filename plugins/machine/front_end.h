// What becomes of references before they come to caches: which of them the caches need to see, what
// stride prefetchers of the first ones ask for, and which translation buffers miss. It depends on
// no other core and on no cache, so that a thread of its own can do it in advance.
//
// References come in parts, each of one core, which no other core's come between. Not thread-safe.
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
    // Both stay their owner's, and there.
    FrontEnd(const Machine& machine, const Columns& columns);
    FrontEnd(const FrontEnd&) = delete;
    FrontEnd& operator=(const FrontEnd&) = delete;

    // Whether there is anything to do: else the caches need to see all references, or FirstCaches.
    bool is_useful() const;
    // Nothing of a core is needed any more, where each thread has its own.
    void forget(std::uint32_t core);

    // A part of the core begins, with at most so many records. `sees_all`: the caches need to see
    // all, because something else comes between these references.
    void begin(std::uint32_t core, std::size_t records, bool sees_all = false);
    // The part's next reference, of that record.
    void add(const Reference& reference, std::uint32_t record) {
        // One line, and another one that is left out if it is the same: there is no branch.
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
    // Where Machine::page is 0: the sizes of pages of the core's references that are added from now
    // on, until the next call or forget(); pages of 4K before. `steps` are the part's.
    void translate_by(std::uint32_t core, PageSizes& sizes, Steps& steps);
    // What is to be done for all that was added.
    void finish(Steps& steps);

  private:
    // A reference to a line.
    struct Touch {
        std::uint64_t address, pc;
        std::uint32_t record;
        std::uint16_t bytes;
        bool writes;
        bool crosses;  // the reference is to another line, too
    };
    struct Strides {
        StrideTable* table;
        std::uint32_t prefetcher;
    };
    // The way of fetches, or of references to data.
    struct Path {
        bool has_cache = false;
        CoreTranslation* translation = nullptr;  // none that holds such pages
        RecentLines* recent = nullptr;           // the cache needs to see all
        std::vector<Strides> strides;
        // What the cache may prefetch behind a reference to a line makes other lines the most
        // recent of sets of which nothing is known then: relative to it, and of strides.
        std::vector<std::uint64_t> forgets;
        bool forgets_wishes = false;
    };
    struct Core {
        Path paths[2];  // of fetches and of data
        std::vector<std::unique_ptr<RecentLines>> recent;
        bool is_one_path = false;     // with the same most recent lines or strides
        bool skips_repeated = false;  // a second fetch of the line that was fetched last
    };

    // What was added and is not translated.
    void translate(Steps& steps);
    void translate_further(bool data, const Touch& touch, Steps& steps);
    void find_steps(bool data, Steps& steps) const;
    template <bool kForgets>
    void find_needed(const Path& path, const Touch* begin, const Touch* end,
                     std::span<const Wish> wishes, Steps& steps) const;
    void wish(const Path& path, const Touch& touch, Steps& steps) const;
    void look_at(const Path& path, const Touch& touch, Steps& steps) const;
    // Those that are written, as bits.
    std::uint64_t words(const Touch& touch) const {
        const std::uint64_t words =
            tells_sharing_ ? words_.of(touch.address & (machine_.line - 1), touch.bytes) : 1;
        return words & -std::uint64_t{touch.writes};
    }
    Core& core(std::uint32_t number);
    void find_recent_lines(Core& core, bool data, std::uint32_t cache);
    // Those of one prefetcher, of all caches that are one.
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
    bool sees_all_ = false;                // likewise
    bool skips_repeated_ = false;          // likewise
    std::uint64_t fetched_ = kNoLine;      // last, where repeated fetches are skipped
    std::vector<Touch> touches_[2];        // of the part: room for fetches and for data
    Touch* next_[2] = {};                  // in these
    const Touch* translated_[2] = {};      // up to there
    std::vector<const Touch*> missed_[2];  // first buffers
};

}  // namespace machine
