// Which references of the program a machine needs to see, so that what it counts is exact.
#pragma once

#include "plugins/machine/machine.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace machine {

// What filters (docs/internals/captures.md) may leave out: references to the most recent line of a
// set of a filter with so many sets; 0: nothing.
struct NeededRecords {
    std::uint32_t fetch_sets = 0;
    std::uint32_t data_sets = 0;  // of data, except first writes
};
NeededRecords needed_records(const Machine& machine);
// Whether a second fetch from the page that was fetched from last changes nothing in buffers.
bool buffers_forget_repetition(const Machine& machine);

// The most recent line of each set of a first cache, as far as it is known: a reference to that
// line hits, and changes nothing but what a write changes. docs/internals/captures.md says why that
// is exact.

class RecentLines {
  public:
    // As many sets as the cache has, a power of two, or fewer. Nothing is known.
    explicit RecentLines(std::uint64_t sets) : entries_(sets), mask_(sets - 1) {}

    // A reference to a line; of a write, its words, as bits, else 0. Whether the cache needs to see
    // it: it is to another line, or the first write to one of these words since the line became the
    // most recent.
    bool refer(std::uint64_t line, std::uint64_t words) {
        // Without a branch: nobody can predict it.
        Entry& entry = entries_[line & mask_];
        const std::uint64_t written = entry.written & -std::uint64_t{entry.line == line};
        const bool is_new = (entry.line != line) | ((words & ~written) != 0);
        entry = {line, written | words};
        return is_new;
    }
    // Nothing is known any more of the line's set.
    void forget_if(bool condition, std::uint64_t line) {
        entries_[line & mask_].line |= -std::uint64_t{condition};
    }
    // Nothing is known any more.
    void forget() { std::fill(entries_.begin(), entries_.end(), Entry{}); }

  private:
    struct Entry {
        std::uint64_t line = ~std::uint64_t{0};
        std::uint64_t written = 0;
    };
    std::vector<Entry> entries_;
    std::uint64_t mask_;
};

}  // namespace machine
