// Prefetchers of caches.
#pragma once

#include "plugins/machine/machine.h"
#include "plugins/machine/replacement.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace machine {

// A stride prefetcher: a reference prediction table of 256 instructions (Chen and Baer, "Effective
// hardware-based data prefetching for high-performance processors", IEEE Transactions on Computers
// 44, 1995), with a confidence counter in place of the paper's four states.
//
// Its requests depend only on the references that come to the cache.
class StrideTable {
  public:
    StrideTable(std::uint32_t degree, std::uint32_t distance, unsigned line_shift)
        : degree_(degree), distance_(distance), line_shift_(line_shift) {}

    // Calls `want(line)` for each requested line.
    template <typename Want>
    void reference(std::uint64_t pc, std::uint64_t address, const Want& want) {
        // Uses no branches, because neither the instruction of an entry nor strides are
        // predictable.
        Entry& entry = table_[(pc ^ pc >> 8) % kEntries];
        const bool known = entry.pc == pc;
        const std::uint64_t stride = known ? address - entry.last : 0;
        const std::uint64_t before_that = known ? entry.stride : 0;
        const bool same = known & (stride == before_that);
        const std::int64_t confidence =
            std::clamp<std::int64_t>((known ? entry.confidence : 0) + (same ? 1 : -1), 0, 3);
        const std::uint64_t expected = confidence == 0 ? stride : before_that;
        entry = {pc, address, expected, confidence};
        if ((confidence < 2) | (expected == 0)) return;
        const std::uint64_t line = address >> line_shift_;
        std::uint64_t before = line;
        for (std::uint32_t i = 0; i < degree_; ++i) {
            const std::uint64_t ahead = (address + expected * (distance_ + i)) >> line_shift_;
            if (ahead != before && ahead != line) want(ahead);
            before = ahead;
        }
    }

  private:
    static constexpr std::size_t kEntries = 256;
    struct Entry {
        std::uint64_t pc = 0, last = 0, stride = 0;
        std::int64_t confidence = 0;  // 0 to 3
    };
    std::uint32_t degree_, distance_;
    unsigned line_shift_;
    std::array<Entry, kEntries> table_{};
};

class Prefetcher {
  public:
    static constexpr std::uint32_t kMostLines = 64;

    // A reference by the program that has reached the cache.
    struct Reference {
        std::uint64_t line;
        std::uint64_t address;
        bool hit;
        bool first;  // first reference since the line was prefetched
        Referrer by;
    };

    struct Wanted {
        std::uint64_t line;
        std::uint32_t level;  // into the first cache of this level or below; 0: into its own
    };

    // The requested lines. Lines beyond kMostLines are dropped.
    class Lines {
      public:
        void add(std::uint64_t line, std::uint32_t level = 0) {
            if (count_ < kMostLines) lines_[count_++] = {line, level};
        }
        void clear() { count_ = 0; }
        std::span<const Wanted> all() const { return {lines_.data(), count_}; }

      private:
        std::array<Wanted, kMostLines> lines_;
        std::uint32_t count_ = 0;
    };

    Prefetcher() = default;
    virtual ~Prefetcher() = default;
    Prefetcher(const Prefetcher&) = delete;
    Prefetcher& operator=(const Prefetcher&) = delete;

    virtual void reference(const Reference& reference, Lines& wanted) = 0;
    // True if it needs fill() and leave().
    virtual bool watches() const { return false; }
    // A line has come into the cache.
    virtual void fill(std::uint64_t, const Referrer&, bool /*prefetch*/, bool /*dirty*/) {}
    // A line has left the cache. `unused`: prefetched and not referenced since.
    virtual void leave(std::uint64_t, bool /*dirty*/, bool /*unused*/) {}
};

bool is_prefetcher(const std::string& kind);
std::vector<std::string> prefetcher_names();
// True if it needs all hits, and not only misses and first references to prefetched lines.
bool sees_hits(const Prefetch& prefetch);

// Null if there is no built-in prefetcher of that kind.
std::unique_ptr<Prefetcher> built_in_prefetcher(const Prefetch& prefetch, std::uint32_t line_bytes);

}  // namespace machine
