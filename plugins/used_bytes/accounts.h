// Charges fetched lines to the place in the program that fetches them, to its thread and section,
// and to the arena of the line.
#pragma once

#include "plugins/common/page_map.h"
#include "plugins/used_bytes/footprint_cache.h"
#include "plugins/used_bytes/sections.h"

#include "assay/trace_types.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace used_bytes {

// An instruction that fetches lines: the lines of its operands, or with `code`, the lines of itself
// and of the code that is executed after it.
struct Fetcher {
    std::uint32_t instr;
    bool code;

    friend bool operator==(const Fetcher&, const Fetcher&) = default;
    friend bool operator<(const Fetcher& a, const Fetcher& b) {
        return std::tie(a.instr, a.code) < std::tie(b.instr, b.code);
    }
};

// A fetcher in a calling context.
struct Point {
    Fetcher by;
    std::uint32_t context;
    std::uint32_t pattern;  // see Accounts::pattern()
    Usage usage;
};

class Accounts {
  public:
    // `places` is the number of lines that the cache can hold.
    Accounts(std::size_t places, std::optional<SectionChoice> choice);

    // The following calls are for this thread.
    void enter(std::uint32_t thread);
    // If false, the following fetches are not charged.
    void set_counting(bool counts) { counts_ = counts; }
    // Handles a marker of the current thread.
    void note(const trace_marker_t& marker);

    // Loads the data for fetched() into the cache of the host processor.
    void prefetch(std::size_t place, std::uint64_t line) const {
        __builtin_prefetch(&stays_[place], 1);
        lines_.prefetch(line);
    }

    PointNumber point(const Fetcher& by, std::uint32_t context);
    // `by` brings a line to a place of the cache. `address` is the first one that it touches in the
    // line.
    void fetched(std::size_t place, std::uint64_t line, std::uint64_t address, PointNumber by);
    // The line at this place is replaced. `used` are the bytes that were used in it.
    void evicted(std::size_t place, const Use& used, PointNumber by);
    // The line was in the cache when the program ended.
    void left(std::size_t place, const Use& used);

    const std::vector<Point>& points() const { return points_; }
    // For each fetcher, the number of its pattern, which covers lines fetched in chosen sections.
    const std::map<Fetcher, std::uint32_t>& pattern_numbers() const { return pattern_numbers_; }
    const Pattern& pattern(std::uint32_t number) const { return patterns_[number]; }
    const Sections& sections() const { return sections_; }
    const Arenas& arenas() const { return arenas_; }
    // The lines fetched in chosen sections: in total, by thread, and by arena. In an arena, `again`
    // counts since the line belongs to the arena.
    const Usage& total() const { return total_; }
    // The part of total() that is lines of code.
    const Usage& code() const { return code_; }
    const std::unordered_map<std::uint32_t, Usage>& threads() const { return threads_; }
    struct Arena {
        Usage usage;
        Histogram earlier;  // lines that now belong to another arena
        MostFetched most_fetched;
    };
    const std::vector<Arena>& by_arena() const { return by_arena_; }
    const pages::LineTable<LineHistory>& lines() const { return lines_; }
    // The point that evicted a line after its last fetch, or kNoPoint.
    PointNumber evicted_last(std::uint64_t line) const;

  private:
    // A line in the cache.
    struct Stay {
        PointNumber by = kNoPoint;  // kNoPoint: not fetched in a chosen section
        std::uint32_t section = Sections::kNone;
        std::uint32_t arena = Arenas::kOutside;
        std::uint32_t thread = 0;
        std::uint32_t line = 0;  // number in lines_
    };

    void gone(const Stay& stay, const Use& used);
    std::size_t slot_of(const Fetcher& by, std::uint32_t context) const;
    void grow();

    Sections sections_;
    Arenas arenas_;
    std::vector<Stay> stays_;  // by place
    std::vector<Point> points_;
    std::deque<Pattern> patterns_;
    std::map<Fetcher, std::uint32_t> pattern_numbers_;
    // A hash table of points with open addressing. Its size is a power of two.
    std::vector<PointNumber> slots_;
    pages::LineTable<LineHistory> lines_;
    Usage total_, code_;
    std::unordered_map<std::uint32_t, Usage> threads_;
    std::vector<Arena> by_arena_;

    bool counts_ = true;
    std::uint32_t thread_ = 0;  // current thread, and its usage and section
    Usage* thread_usage_ = nullptr;
    std::uint32_t* section_ = nullptr;
    std::unordered_map<std::uint32_t, std::uint32_t> section_of_;  // by thread
};

}  // namespace used_bytes
