// One cache that records the bytes of each line that are touched while the line is in the cache.
//
// Replaces the least recently used line of a set. Writes fetch lines like reads. A reference across
// lines touches each line, the lowest first.
#pragma once

#include "plugins/common/geometry.h"
#include "plugins/common/page_map.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace used_bytes {

// The used bytes of lines, in 64 parts of a line.

inline constexpr std::uint32_t kParts = 64;

// The part of a line that was used while the line was in the cache.
struct Use {
    std::uint32_t bytes;
    std::uint64_t parts;  // a bit for each; in lines below 64 bytes, a part is a byte
};

struct Pattern {
    std::uint64_t lines = 0;
    std::array<std::uint64_t, kParts> in_part{};         // number of lines by used part
    std::array<std::uint64_t, kParts + 1> part_count{};  // number of lines by number of used parts

    void add(std::uint64_t parts) {
        ++lines;
        ++part_count[static_cast<std::size_t>(std::popcount(parts))];
        if (parts == ~std::uint64_t{0}) return;  // the usual case: see lines_with()
        for (; parts != 0; parts &= parts - 1)
            ++in_part[static_cast<std::size_t>(std::countr_zero(parts))];
    }
    std::uint64_t lines_with(std::size_t part) const { return in_part[part] + part_count[kParts]; }
};

// A mask of the `count` lowest bits, up to 64. A line has one word of bits for each piece of 64
// bytes, at least one.
inline std::uint64_t ones(std::uint64_t count) {
    static constexpr auto kOnes = [] {
        std::array<std::uint64_t, 65> all{};
        for (std::size_t i = 1; i < all.size(); ++i) all[i] = ~std::uint64_t{0} >> (64 - i);
        return all;
    }();
    return kOnes[count];
}

class FootprintCache {
  public:
    // The geometry must have a power of two of sets. Throws std::bad_alloc.
    explicit FootprintCache(const cache::Geometry& geometry);

    // Places of lines are below this number.
    std::size_t places() const { return ways_ * (set_mask_ + 1); }
    std::uint64_t sets() const { return set_mask_ + 1; }
    std::uint32_t line_bytes() const { return 1U << line_shift_; }
    std::uint32_t piece_bytes() const { return piece_; }

    // Makes a line the most recent of its set, and returns its place. If the line was `absent`, the
    // place is empty or holds another line, and replace() must follow.
    std::size_t touch(std::uint64_t line, bool& absent) {
        const std::size_t set = line & set_mask_;
        std::size_t way = find(sets_.data() + set * words_of_set_, line + 1);
        absent = way == ways_;
        if (absent) way = oldest(set);
        times(set)[way] = ++now_;
        return set * ways_ + way;
    }
    void replace(std::size_t place, std::uint64_t line) {
        const std::size_t set = line & set_mask_;
        sets_.data()[set * words_of_set_ + place % ways_] = line + 1;
        std::fill_n(bits(place), pieces_, 0);
    }
    // Loads the set of the line into the cache of the host processor.
    void prefetch(std::uint64_t line) const {
        const std::uint64_t* const set = sets_.data() + (line & set_mask_) * words_of_set_;
        for (std::size_t i = 0; i < words_of_set_; i += 8) __builtin_prefetch(set + i, 1);
    }

    // The bits of touched bytes of the line at this place, one word for each piece.
    std::uint64_t* bits(std::size_t place) const {
        const std::size_t set = place / ways_, way = place % ways_;
        return sets_.data() + set * words_of_set_ + 2 * ways_ + way * pieces_;
    }
    bool holds_line(std::size_t place) const {
        return sets_.data()[place / ways_ * words_of_set_ + place % ways_] != 0;
    }
    Use used(std::size_t place) const {
        const std::uint64_t* const words = bits(place);
        if (pieces_ == 1) return {static_cast<std::uint32_t>(std::popcount(*words)), *words};
        Use use{0, 0};
        for (std::size_t i = 0; i < pieces_ * kParts; i += pieces_) {
            // A part has as many bytes as the line has pieces: a power of two, at most 64.
            const std::uint64_t part = words[i / kParts] >> (i % kParts) & ones(pieces_);
            use.bytes += static_cast<std::uint32_t>(std::popcount(part));
            use.parts |= std::uint64_t{part != 0} << (i / pieces_);
        }
        return use;
    }

  private:
    std::uint64_t* times(std::size_t set) const {
        return sets_.data() + set * words_of_set_ + ways_;
    }
    // Compares eight ways without a branch, because the way of a line cannot be predicted.
    std::size_t find(const std::uint64_t* tags, std::uint64_t tag) const {
        std::size_t way = 0;
        for (; way + 8 <= ways_; way += 8) {
            unsigned found = 0;
            for (unsigned i = 0; i < 8; ++i)
                found |= static_cast<unsigned>(tags[way + i] == tag) << i;
            if (found != 0) return way + static_cast<std::size_t>(std::countr_zero(found));
        }
        while (way < ways_ && tags[way] != tag) ++way;
        return way;
    }
    std::size_t oldest(std::size_t set) const {
        const std::uint64_t* const all = times(set);
        return static_cast<std::size_t>(std::min_element(all, all + ways_) - all);
    }

    std::uint32_t line_shift_;
    std::uint32_t piece_;
    std::size_t ways_;
    std::size_t pieces_;  // of a line
    std::uint64_t set_mask_;
    std::uint64_t now_ = 0;
    // Each set has for all its ways: the numbers of the lines + 1 or 0, the times of their last
    // touches, and the bits.
    std::size_t words_of_set_;
    pages::ZeroPages<std::uint64_t> sets_;
};

// The lines of an arena that are fetched most often, with the points that last fetched and evicted
// them. Memory is bounded.

// A place in the program from which lines are fetched: an instruction in a calling context.
using PointNumber = std::uint32_t;
inline constexpr PointNumber kNoPoint = UINT32_MAX;

// The history of a line, with its last stay in the cache.
struct LineHistory {
    std::uint32_t fetches = 0;           // in total
    std::uint32_t fetches_in_arena = 0;  // since the line belongs to `arena`
    std::uint32_t arena = 0;
    PointNumber fetched_by = kNoPoint;
    PointNumber evicted_by = kNoPoint;  // kNoPoint while it is in the cache
};

// Number of lines by number of fetches.
using Histogram = std::map<std::uint32_t, std::uint64_t>;

class MostFetched {
  public:
    static constexpr std::size_t kLines = 16;
    static constexpr std::size_t kStays = 4;

    struct Stay {
        PointNumber fetched_by, evicted_by;
    };
    struct Line {
        std::uint64_t line = 0;
        std::uint32_t fetches = 0;
        std::array<Stay, kStays> stays{};  // the last stays; fetch n is at n modulo kStays

        // The number of last fetches that are known: at least two, and all since the line got into
        // the table.
        std::uint32_t known() const;
    };

    // `by` fetches the line again. `history` is from before this fetch.
    void fetched_again(std::uint64_t line, const LineHistory& history, PointNumber by);

    // The most fetched line comes first.
    std::vector<Line> sorted() const;

  private:
    Line* find(std::uint64_t line);

    std::vector<Line> lines_;
    std::uint32_t fewest_ = 0;  // fewest fetches in lines_, once it has kLines
};

}  // namespace used_bytes
