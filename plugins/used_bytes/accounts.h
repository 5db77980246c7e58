// Whom the lines that are fetched are charged to: the place in the program that fetches them, its
// thread, its section, and the arena that they lie in.
#pragma once

#include "plugins/used_bytes/footprint_cache.h"
#include "plugins/common/page_map.h"
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

// An instruction that fetches lines: those of its operands, or, as `code`, those that it lies in
// itself and those behind it that are executed next.
struct Fetcher {
    std::uint32_t instr;
    bool code;

    friend bool operator==(const Fetcher&, const Fetcher&) = default;
    friend bool operator<(const Fetcher& a, const Fetcher& b) {
        return std::tie(a.instr, a.code) < std::tie(b.instr, b.code);
    }
};

// It in a calling context.
struct Point {
    Fetcher by;
    std::uint32_t context;
    std::uint32_t pattern;  // a number: see Accounts::pattern()
    Usage usage;
};

class Accounts {
  public:
    // Of a cache with that many places for lines.
    Accounts(std::size_t places, std::optional<SectionChoice> choice);

    // What follows is of that thread.
    void enter(std::uint32_t thread);
    // Whether what follows counts. A line that is fetched while it does not belongs to nobody.
    void set_counting(bool counts) { counts_ = counts; }
    // The thread says this.
    void note(const trace_marker_t& marker);

    // Lets fetched() find what it needs in the processor's own cache.
    void prefetch(std::size_t place, std::uint64_t line) const {
        __builtin_prefetch(&stays_[place], 1);
        lines_.prefetch(line);
    }

    PointNumber point(const Fetcher& by, std::uint32_t context);
    // `by` brings a line to a place of the cache, touching that address of it first.
    void fetched(std::size_t place, std::uint64_t line, std::uint64_t address, PointNumber by);
    // The line at that place, of which that was used, is replaced.
    void evicted(std::size_t place, const Use& used, PointNumber by);
    // The program has ended with the line in the cache.
    void left(std::size_t place, const Use& used);

    const std::vector<Point>& points() const { return points_; }
    // The patterns of lines that it fetched in chosen sections.
    const std::map<Fetcher, std::uint32_t>& pattern_numbers() const { return pattern_numbers_; }
    const Pattern& pattern(std::uint32_t number) const { return patterns_[number]; }
    const Sections& sections() const { return sections_; }
    const Arenas& arenas() const { return arenas_; }
    // What was fetched in the chosen sections: in all, by thread, and by arena, where `again` means
    // since the line belongs to it.
    const Usage& total() const { return total_; }
    // Of the total, the lines of code.
    const Usage& code() const { return code_; }
    const std::unordered_map<std::uint32_t, Usage>& threads() const { return threads_; }
    struct Arena {
        Usage usage;
        Histogram earlier;  // lines that have become another arena's
        MostFetched most_fetched;
    };
    const std::vector<Arena>& by_arena() const { return by_arena_; }
    const pages::LineTable<LineHistory>& lines() const { return lines_; }
    // What evicted a line after it was fetched the last time; kNoPoint if nothing did.
    PointNumber evicted_last(std::uint64_t line) const;

  private:
    // Of a line in the cache.
    struct Stay {
        PointNumber by = kNoPoint;  // kNoPoint: not fetched in a chosen section
        std::uint32_t section = Sections::kNone;
        std::uint32_t arena = Arenas::kOutside;
        std::uint32_t thread = 0;
        std::uint32_t line = 0;  // its number in lines_
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
    std::vector<PointNumber> slots_;  // points by hash: open addressing, a power of two
    pages::LineTable<LineHistory> lines_;
    Usage total_, code_;
    std::unordered_map<std::uint32_t, Usage> threads_;
    std::vector<Arena> by_arena_;

    bool counts_ = true;
    std::uint32_t thread_ = 0;  // that is executing, and where it is
    Usage* thread_usage_ = nullptr;
    std::uint32_t* section_ = nullptr;
    std::unordered_map<std::uint32_t, std::uint32_t> section_of_;  // by thread
};

}  // namespace used_bytes
