// One cache that remembers which bytes of a line were touched while it was there.
//
// Replaces the least recently used line of a set; a write brings its line in as a read does. A
// reference that lies across lines touches each of them, the lowest first.
#pragma once

#include "plugins/common/geometry.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace used_bytes {

// Zero pages that cost nothing until they are touched: a simulated cache can be as large as a
// server's. Throws std::bad_alloc.
class ZeroPages {
  public:
    explicit ZeroPages(std::size_t bytes);
    ~ZeroPages();
    ZeroPages(const ZeroPages&) = delete;
    ZeroPages& operator=(const ZeroPages&) = delete;

    std::uint64_t* words() const { return words_; }

  private:
    std::uint64_t* words_;
    std::size_t bytes_;
};

class FootprintCache {
  public:
    // The geometry must have a power of two of sets. Throws std::bad_alloc.
    explicit FootprintCache(const cache::Geometry& geometry);

    // Where a line is: below this number.
    std::size_t places() const { return ways_ * (set_mask_ + 1); }
    std::uint32_t line_bytes() const { return 1U << line_shift_; }
    // The part of a line that has a word of the mask.
    std::uint32_t piece_bytes() const { return piece_; }

    // A look at the lines that were touched last, for the loop over records: a copy, whose members
    // the compiler can keep in registers. Valid as long as the cache.
    class RecentLines;
    RecentLines recent_lines();

    // Touches the bytes, in one piece of a line. Calls `replace(place, line)` if the line is not
    // there, before it replaces what is at that place.
    template <typename Replace>
    void touch(std::uint64_t address, std::uint32_t bytes, Replace&& replace) {
        const std::uint64_t line = address >> line_shift_;
        const std::size_t first = (line & set_mask_) * ways_;
        std::size_t place = find(first, line);
        if (place == kAbsent) {
            place = oldest(first);
            replace(place, line);
            tags_.words()[place] = line + 1;
            for (std::size_t i = 0; i < words_; ++i) masks_.words()[place * words_ + i] = 0;
        }
        times_.words()[place] = ++now_;
        std::uint64_t* const mask = masks_.words() + place * words_;
        recent_[line & recent_mask_] = {line, mask};
        note(mask[address >> 6 & word_mask_], kOnes[bytes] << (address & (piece_ - 1)));
    }

    bool holds_line(std::size_t place) const { return tags_.words()[place] != 0; }
    // Of a line that is there: how many of its bytes were touched since it is.
    std::uint32_t used(std::size_t place) const {
        std::uint32_t bytes = 0;
        for (std::size_t i = 0; i < words_; ++i)
            bytes += static_cast<std::uint32_t>(std::popcount(masks_.words()[place * words_ + i]));
        return bytes;
    }

  private:
    static constexpr std::size_t kAbsent = SIZE_MAX;
    // Stays in the processor's first-level cache.
    static constexpr std::uint64_t kMostRecent = 1024;

    struct Recent {
        std::uint64_t line;
        std::uint64_t* mask;
    };

    // Ones for the lowest bytes, by their number.
    static constexpr auto kOnes = [] {
        std::array<std::uint64_t, 65> ones{};
        for (std::size_t bytes = 1; bytes < ones.size(); ++bytes)
            ones[bytes] = ~std::uint64_t{0} >> (64 - bytes);
        return ones;
    }();

    // Mostly they are there already: a comparison waits for nothing, as a change would for the one
    // before.
    static void note(std::uint64_t& word, std::uint64_t bits) {
        if ((word & bits) != bits) word |= bits;
    }

    std::size_t find(std::size_t first, std::uint64_t line) const {
        const std::uint64_t* const tags = tags_.words() + first;
        for (std::size_t way = 0; way < ways_; ++way)
            if (tags[way] == line + 1) return first + way;
        return kAbsent;
    }

    std::size_t oldest(std::size_t first) const {
        const std::uint64_t* const times = times_.words() + first;
        std::size_t found = 0;
        for (std::size_t way = 1; way < ways_; ++way)
            if (times[way] < times[found]) found = way;
        return first + found;
    }

    std::uint32_t line_shift_;
    std::uint32_t piece_;
    std::size_t ways_;
    std::size_t words_;  // of the mask of a line
    std::uint64_t word_mask_;
    std::uint64_t set_mask_;
    std::uint64_t recent_mask_;
    std::uint64_t now_ = 0;
    std::vector<Recent> recent_;
    ZeroPages tags_;   // the line's number + 1, by place; 0: no line
    ZeroPages times_;  // when it was touched last
    ZeroPages masks_;
};

class FootprintCache::RecentLines {
  public:
    // True if the line was the last one that was touched of several sets, those that share an entry
    // of the table of recent lines; then its bytes have been noted. The bytes must lie in one piece
    // of a line. `kUsual`: the lines have 64 bytes.
    //
    // That changes nothing else: no other line of the set was touched since, so this one is its
    // most recent already.
    template <bool kUsual>
    bool touch(std::uint64_t address, std::uint32_t bytes) const {
        const std::uint64_t line = address >> (kUsual ? 6 : line_shift_);
        const Recent& recent = recent_[line & mask_];
        if (recent.line != line) return false;
        const std::uint64_t word = kUsual ? 0 : address >> 6 & word_mask_;
        note(recent.mask[word], kOnes[bytes] << (address & (kUsual ? 63 : piece_ - 1)));
        return true;
    }

  private:
    friend FootprintCache;
    explicit RecentLines(const FootprintCache& cache)
        : recent_(cache.recent_.data()),
          mask_(cache.recent_mask_),
          line_shift_(cache.line_shift_),
          piece_(cache.piece_),
          word_mask_(cache.word_mask_) {}

    const Recent* recent_;
    std::uint64_t mask_;
    std::uint32_t line_shift_, piece_;
    std::uint64_t word_mask_;
};

inline FootprintCache::RecentLines FootprintCache::recent_lines() {
    return RecentLines(*this);
}

}  // namespace used_bytes
