// What is to be done for a part of the program's references, as FrontEnd or FirstCaches find it for
// Hierarchy.
#pragma once

#include "plugins/machine/cache_instance.h"
#include "plugins/machine/columns.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace machine {

// A line that a prefetcher of the first cache asks for.
struct Wish {
    std::uint64_t behind;      // the line of the reference
    std::uint64_t line;        // that is asked for
    std::uint32_t prefetcher;  // index in Cache::prefetch
    std::uint32_t record;      // of the reference
};

// A line that a first cache asks those below for, where FirstCaches simulates it.
struct Demand {
    std::uint64_t line : 56;
    std::uint64_t is_prefetch : 1;  // behind the line that the reference is to
    std::uint64_t is_miss : 1;      // the first of the reference
    std::uint64_t is_last : 1;      // for the reference to that line
    std::uint64_t gone : 56;        // the line that it has lost for it
    std::uint64_t gone_flags : 8;   // 0: it has lost none
    std::uint32_t place;            // of the line, as CacheArray::place_of()
    std::uint32_t record;           // of the reference
};
static_assert(sizeof(Demand) == 24);

// References have numbers: those of the part's records.
class Steps {
  public:
    // One more of a column.
    struct Count {
        std::uint32_t record, column;
    };

    std::vector<Wish> wishes;  // by record
    std::vector<Count> counts;
    // Of FirstCaches: what they demand, by record. Nothing else is needed then, and nothing wished.
    bool has_demands = false;
    std::vector<Demand> demands;
    // First caches that are Hierarchy's from now on, of a core: of fetches and of data.
    struct Given {
        std::uint32_t core;
        std::unique_ptr<CacheInstance> caches[2];
    };
    std::vector<Given> given;

    // Of another part.
    void clear(std::size_t records) {
        needed_.assign((records + 63) / 64, 0);
        wishes.clear();
        counts.clear();
        has_demands = false;
        demands.clear();
        given.clear();
    }
    void count(std::uint32_t record, std::uint32_t column) {
        if (column != Columns::kNone) counts.push_back({record, column});
    }
    // The caches need to see the reference.
    void need(std::uint32_t record, bool needed = true) {
        needed_[record / 64] |= std::uint64_t{needed} << record % 64;
    }
    // Those of 64 records, as bits.
    void need_of(std::uint32_t group, std::uint64_t needed) { needed_[group] |= needed; }
    // For each 64 records, likewise.
    std::span<const std::uint64_t> needed() const { return needed_; }

  private:
    std::vector<std::uint64_t> needed_;
};

}  // namespace machine
