// The references that a machine needs to see so that its counts are exact.
#pragma once

#include "plugins/machine/machine.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace machine {

// Filters (docs/internals/captures.md) may omit references to the most recent line of each of this
// many sets. 0: they may omit nothing.
struct NeededRecords {
    std::uint32_t fetch_sets = 0;
    std::uint32_t data_sets = 0;  // except first writes
};
NeededRecords needed_records(const Machine& machine);
// True if a second fetch from the same page as the last fetch changes nothing in buffers.
bool buffers_forget_repetition(const Machine& machine);

// The most recent line of each set of a first cache, as far as it is known. A reference to that
// line hits, and changes nothing except by writing. docs/internals/captures.md explains why this is
// exact.
class RecentLines {
  public:
    // `sets` is the cache's number of sets, a power of two, or fewer. No line is known at first.
    explicit RecentLines(std::uint64_t sets) : entries_(sets), mask_(sets - 1) {}

    // Takes a reference to a line. `words` are the words of a write, as bits, or 0. Returns true if
    // the cache needs to see the reference: it is to another line, or the first write to one of
    // these words since the line became the most recent one.
    bool refer(std::uint64_t line, std::uint64_t words) {
        // Uses no branch, because the result is unpredictable.
        Entry& entry = entries_[line & mask_];
        const std::uint64_t written = entry.written & -std::uint64_t{entry.line == line};
        const bool is_new = (entry.line != line) | ((words & ~written) != 0);
        entry = {line, written | words};
        return is_new;
    }
    // Forgets the most recent line of the line's set.
    void forget_if(bool condition, std::uint64_t line) {
        entries_[line & mask_].line |= -std::uint64_t{condition};
    }
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
