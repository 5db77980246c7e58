// The filters of a replay. They pass the same records as the native driver, which filters in the
// program.
#pragma once

#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace assay::replay {

// Filters of references and fetches: trace_capture_references and the functions after it.

// No line has such a number, because addresses have at most 57 bits.
inline constexpr std::uint64_t kNoLine = UINT64_MAX;

// For data, and for code among it.
class DataFilter {
  public:
    explicit DataFilter(const trace::Spec& spec)
        : shift_(static_cast<unsigned>(std::countr_zero(std::max(spec.data.line_bytes, 1U)))),
          line_bytes_(spec.data.line_bytes),
          sets_(spec.data.sets),
          first_writes_(spec.data.first_writes()),
          lines_(spec.data.sets, kNoLine) {}

    bool passes(std::uint64_t address, std::uint32_t bytes, bool write) {
        if (sets_ == 0) return true;
        const std::uint64_t first = address >> shift_;
        const std::uint64_t last = (address + std::min(bytes, line_bytes_) - 1) >> shift_;
        const bool one = use(first, write);
        return last == first ? one : use(last, write) || one;
    }
    void forget() { std::fill(lines_.begin(), lines_.end(), kNoLine); }

  private:
    static constexpr std::uint64_t kWritten = std::uint64_t{1} << 63;

    bool use(std::uint64_t line, bool write) {
        std::uint64_t& recent = lines_[line & (sets_ - 1)];
        const std::uint64_t with_write = first_writes_ ? line | kWritten : line;
        if (recent == with_write || (recent == line && !(write && first_writes_))) return false;
        recent = write ? with_write : line;
        return true;
    }

    unsigned shift_;
    std::uint32_t line_bytes_, sets_;
    bool first_writes_;
    std::vector<std::uint64_t> lines_;  // the most recent line of each set
};

// Replaces the least recently used line of a set. It is a level-1 cache of a thread
// (trace_capture_misses), or with one way a filter of fetches.
class LruCache {
  public:
    // With 0 sets or ways it is not there: nothing may be looked up. Each way holds `first_line` at
    // the beginning.
    LruCache(const trace::Filter& shape, std::uint32_t ways, std::uint64_t first_line)
        : shift_(static_cast<unsigned>(std::countr_zero(std::max(shape.line_bytes, 1U)))),
          line_bytes_(shape.line_bytes),
          ways_(ways),
          mask_(shape.sets - 1),
          first_line_(first_line),
          lines_(std::size_t{shape.sets} * ways, first_line) {}

    bool is_there() const { return !lines_.empty(); }
    // Uses all lines of a reference. Only the first `line_bytes` bytes of a larger reference count.
    // True if a line was missing.
    bool misses(std::uint64_t address, std::uint32_t bytes) {
        return depth(address, bytes) == ways_;
    }
    // The same for the lines `first` to `last`, relative to the line of `address`.
    bool misses(std::uint64_t address, unsigned first, unsigned last) {
        return depth_of_lines((address >> shift_) + first, (address >> shift_) + last) == ways_;
    }
    // Like misses(), but tells how many lines of its set were used since a line of the reference:
    // the most for any of them, or the ways if a line was missing. A cache with at most so many
    // ways, but the same sets, misses.
    std::uint32_t depth(std::uint64_t address, std::uint32_t bytes) {
        const std::uint64_t end = address + std::clamp(bytes, 1U, line_bytes_) - 1;
        return depth_of_lines(address >> shift_, end >> shift_);
    }
    // True if misses() of one line would return false and change nothing.
    bool is_most_recent(std::uint64_t address, unsigned line) const {
        const std::uint64_t number = (address >> shift_) + line;
        return is_there() && lines_[(number & mask_) * ways_] == number;
    }
    void clear() { std::fill(lines_.begin(), lines_.end(), first_line_); }

  private:
    std::uint32_t depth_of_lines(std::uint64_t first, std::uint64_t last) {
        std::uint32_t deepest = use(first);
        for (std::uint64_t line = first + 1; line <= last; ++line)
            deepest = std::max(deepest, use(line));
        return deepest;
    }
    // Returns the position of the line.
    std::uint32_t use(std::uint64_t line) {
        std::uint64_t* const set = &lines_[(line & mask_) * ways_];
        std::uint64_t moved = line;
        for (std::uint32_t way = 0; way < ways_; ++way) {
            std::swap(moved, set[way]);
            if (moved == line) return way;
        }
        return ways_;
    }

    unsigned shift_;
    std::uint32_t line_bytes_, ways_;
    std::uint64_t mask_, first_line_;
    std::vector<std::uint64_t> lines_;  // by set, the most recent line first
};

// How the filters treat the records of a site.
struct ReferenceKind {
    enum Of : std::uint8_t { kNeither, kData, kFetch };
    std::uint16_t bytes;
    Of of;
};
std::vector<ReferenceKind> reference_kinds(std::span<const trace_site_t> sites);

// The level-1 caches of a thread for all outputs of a replay. Caches with the same sets are
// simulated as one: the most recent lines of a set are the content of a cache with fewer ways.
//
// A line that is the most recent one in its set of the cache with the fewest sets is also the most
// recent one in all other caches: their sets are parts of these sets. Another reference to such a
// line changes no cache, and most references are of this kind.
class MissFilters {
  public:
    static constexpr std::size_t kMostOutputs = 32;
    // A bit for each shape. A record goes to an output if both have a bit in common.
    using Shapes = std::uint64_t;

    // `kinds` must outlive this.
    explicit MissFilters(const std::vector<ReferenceKind>& kinds) : kinds_(kinds) {}
    // The shapes of one more output.
    Shapes add(const trace::Spec& spec);
    // False if each record goes to each output.
    bool any() const { return any_; }
    // Returns the shapes that each record misses, valid until the next call.
    const Shapes* simulate(std::span<const trace_record_t> records);
    // Empties the caches, for a new thread.
    void clear();

  private:
    struct Ways {
        std::uint32_t ways, shape;  // the number of the shape's bit
    };
    struct Cache {
        ReferenceKind::Of of;
        trace::Filter filter;  // with the most ways
        LruCache lines;
        std::vector<Ways> shapes;
    };
    // The references of one kind.
    struct References {
        // The most recent line of each set. Not there if some cache is not there, or has other
        // lines.
        LruCache recent{{}, 0, kNoLine};
        std::vector<std::uint32_t> changing;  // the records that can change a cache
    };
    Shapes add(ReferenceKind::Of of, const trace::Filter& filter);
    LruCache recent_lines(ReferenceKind::Of of) const;

    const std::vector<ReferenceKind>& kinds_;
    bool any_ = false;
    std::vector<Cache> caches_;
    std::uint32_t shapes_ = 0;
    std::array<References, ReferenceKind::kFetch + 1> references_;  // by ReferenceKind::Of
    std::vector<Shapes> missed_;
};

}  // namespace assay::replay
