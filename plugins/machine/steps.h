// The work for a part of the program's references, from FrontEnd or FirstCaches to Hierarchy.
#pragma once

#include "plugins/machine/cache_instance.h"
#include "plugins/machine/columns.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace machine {

// A line that a prefetcher of the first cache requests.
struct Wish {
    std::uint64_t behind;      // the line of the reference
    std::uint64_t line;        // the requested line
    std::uint32_t prefetcher;  // index in Cache::prefetch
    std::uint32_t record;      // of the reference
};

// A line that a first cache requests from the caches below, if FirstCaches simulates it.
struct Demand {
    std::uint64_t line : 56;
    std::uint64_t is_prefetch : 1;  // a prefetch after the line of the reference
    std::uint64_t is_miss : 1;      // the first miss of the reference
    std::uint64_t is_last : 1;      // the last demand for the reference's line
    std::uint64_t gone : 56;        // the replaced line
    std::uint64_t gone_flags : 8;   // 0: no line was replaced
    std::uint32_t place;            // of the line: CacheArray::place_of()
    std::uint32_t record;           // of the reference
};
static_assert(sizeof(Demand) == 24);

// References have the numbers of their records in the part.
class Steps {
  public:
    // Adds one to a column.
    struct Count {
        std::uint32_t record, column;
    };

    std::vector<Wish> wishes;  // by record
    std::vector<Count> counts;
    // Set by FirstCaches, whose demands are by record. needed() and wishes are then unused.
    bool has_demands = false;
    std::vector<Demand> demands;
    // First caches of a core, for fetches and for data, that Hierarchy simulates from now on.
    struct Given {
        std::uint32_t core;
        std::unique_ptr<CacheInstance> caches[2];
    };
    std::vector<Given> given;

    // Prepares for another part.
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
    // The same for 64 records, as bits.
    void need_of(std::uint32_t group, std::uint64_t needed) { needed_[group] |= needed; }
    // One word for each 64 records, as bits.
    std::span<const std::uint64_t> needed() const { return needed_; }

  private:
    std::vector<std::uint64_t> needed_;
};

}  // namespace machine
