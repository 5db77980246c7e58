// The misses of a cache, by operand of an instruction, and how many of them a prefetch would have
// avoided.
#pragma once

#include "assay/trace_types.h"
#include "plugins/common/geometry.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace prefetch {

// A cache with the least recently used line replaced first.
class Cache {
  public:
    explicit Cache(const cache::Geometry& geometry);

    // A line that was not there, and when the line that it has replaced was last referred to; 0 if
    // it has replaced none.
    struct Miss {
        std::uint64_t line, replaced;
    };
    // Refers to a line by its number, at a time not earlier than before. Times begin with 1.
    std::optional<Miss> refer(std::uint64_t line, std::uint64_t time);
    // Call it right after a miss: how many other lines of its set were referred to since `time`, at
    // most ways().
    std::size_t others_since(const Miss& miss, std::uint64_t time) const;
    bool share_set(std::uint64_t a, std::uint64_t b) const { return ((a ^ b) & set_mask_) == 0; }
    std::size_t ways() const { return ways_; }

  private:
    struct Way {
        std::uint64_t line = 0;  // plus 1; 0: empty
        std::uint64_t time = 0;
    };
    std::uint64_t set_mask_;
    std::size_t ways_;
    std::vector<Way> lines_;  // by set, the most recent one first
};

// How many executions ahead a prefetch can be: 1, 2, 4, ... 64.
inline constexpr unsigned kDistances = 7;
inline constexpr std::uint64_t kMostAhead = std::uint64_t{1} << (kDistances - 1);

// The misses of an operand at one stride: the distance from its reference before.
struct Stride {
    std::int64_t stride = 0;
    std::uint64_t misses = 0;
    // By distance: those that a prefetch of the address so many strides ahead would have avoided.
    std::array<std::uint64_t, kDistances> saved{};
};

// A set of distances: bit i for 2^i executions.
using Distances = std::uint8_t;

class Operand {
  public:
    explicit Operand(std::uint64_t pc) : pc_(pc) {}

    std::uint64_t pc() const { return pc_; }
    std::uint64_t misses() const { return misses_; }
    // The stride with the most misses. 0 misses if no stride has occurred twice in a row.
    Stride best() const;

    // `run`: how many references in a row had this stride, with this one. `first`: the distances of
    // the first of them if it missed and was not yet counted at its stride. Returns whether this
    // one is.
    bool miss(std::int64_t stride, std::uint32_t run, Distances saved,
              std::optional<Distances> first);
    void miss() { ++misses_; }

  private:
    // Strides beyond this number replace the one with the fewest misses.
    static constexpr std::size_t kMostStrides = 16;
    Stride& entry(std::int64_t stride);

    std::uint64_t pc_;
    std::uint64_t misses_ = 0;
    std::vector<Stride> strides_;
};

class Misses {
  public:
    explicit Misses(const cache::Geometry& geometry);

    void learn(std::span<const trace_site_t> sites, std::span<const trace_instr_t> instrs);
    // `counts`: false for references that only fill the cache.
    void process(std::uint32_t thread, std::span<const trace_record_t> records, bool counts);
    void end(std::uint32_t thread) { threads_.erase(thread); }

    std::span<const Operand> operands() const { return operands_; }

  private:
    static constexpr std::uint64_t kTimes = kMostAhead + 1;
    // Of an operand in a thread.
    struct Last {
        std::uint64_t address = 0;
        std::int64_t stride = 0;
        std::uint64_t number = 0;                 // of references
        std::uint32_t run = 0;                    // 0 after the first reference
        std::optional<Distances> first;           // as for Operand::miss()
        std::uint64_t time = 0, time_before = 0;  // of this reference, and of the one before
        // Of the last kTimes references, by their number. Valid if `run` is at least 2.
        std::vector<std::uint64_t> times;
    };
    struct Thread {
        explicit Thread(const cache::Geometry& geometry) : cache(geometry) {}
        Cache cache;
        std::uint64_t time = 0;
        std::vector<Last> last;  // by operand
    };
    struct Site {
        std::uint32_t operand = 0;  // index plus 1; 0: no reference
        std::uint16_t bytes = 0;
        bool varies = false;  // one execution can refer several times
    };
    void refer(Thread& thread, const Site& site, std::uint64_t address, bool counts);
    static void follow(Last& last, std::uint64_t address, std::uint64_t time);
    Distances saved(const Thread& thread, const Last& last, const Cache::Miss& miss) const;

    const cache::Geometry geometry_;
    const unsigned line_shift_;
    std::vector<Site> sites_;
    std::map<std::pair<std::uint64_t, std::uint8_t>, std::uint32_t> numbers_;  // by pc and operand
    std::vector<Operand> operands_;
    std::map<std::uint32_t, Thread> threads_;
};

}  // namespace prefetch
