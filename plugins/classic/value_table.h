// The values of one operand of one instruction: how many, how many of them zero or as the one
// before, and the most frequent ones.
//
// There are eight sets of eight counters; a value has its set. Within a set the algorithm of Misra
// and Gries ("Finding repeated elements", Science of Computer Programming 2, 1982) decides who
// keeps one: a value without a counter takes over one that is 0, and if there is none, all eight
// are lowered by one, and the value is forgotten. By how much a counter has been lowered since its
// value took it over is known, and counts for the value. So nothing is lost as long as a set has no
// more than eight values, nor of a value that has kept its counter from the beginning; any other
// count is too low by at most a ninth of what the set has seen. Until there are nine values, there
// is one set only.
#pragma once

#include "assay/trace_types.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace classic {

struct Counted {
    std::uint64_t value, count;
};

// What is known of the values in the end: each was seen at least `count` times, and no value was
// seen more than `error` times beyond that.
struct Summary {
    std::uint64_t total = 0, zeros = 0, repeated = 0;
    std::uint64_t error = 0;
    std::vector<Counted> values;  // the most frequent first

    // Only the `most` most frequent values, at the cost of the error.
    void shorten(std::size_t most);
    // How often the most frequent value was seen.
    std::uint64_t top() const { return values.empty() ? 0 : values[0].count; }
    // How many values are in none of the counts.
    std::uint64_t rest() const;
};

inline constexpr unsigned kWays = 8, kSets = 8;

struct alignas(64) ValueSet {
    std::uint64_t values[kWays];
    std::uint32_t counts[kWays];             // 0: free
    std::uint64_t lowered;                   // by how much all counters have been lowered so far
    alignas(64) std::uint64_t since[kWays];  // what that was when the value took its counter over

    // For a value without a counter, where none is free.
    void lower() {
        for (std::uint32_t& count : counts) --count;
        ++lowered;
    }
};

// What the values of a site of the trace are for. Those above kCounted are compared, too: what a
// store writes with what was there.
enum class Role : std::uint8_t { kIgnored, kCounted, kStored, kOverwritten };

// By site of the trace. Copies share the sets, which free() ends.
struct alignas(64) ValueTable {
    std::uint64_t last = 0;
    std::uint64_t total = 0, zeros = 0, runs = 0;  // values; runs of equal ones
    ValueSet* sets = nullptr;                      // none before the first value
    std::uint32_t instr = 0;
    std::uint16_t mask = 0;  // one less than there are sets
    std::uint8_t list = 0;
    Role role = Role::kIgnored;
    // Of what a store writes or overwrites: which 8 bytes of it, and how many of them there are.
    // Only the first are counted as a value.
    std::uint8_t part = 0, parts = 1;
    // The first site of the same instruction and list, where the values of all of them are counted.
    std::uint32_t first = 0;

    void free();
};

inline constexpr unsigned kMostParts = 8;  // of 8 bytes

// Stored value and what was there before arrive one behind the other, in any order, each part by
// part.
struct StoreHalf {
    std::uint32_t instr = 0;
    Role role = Role::kIgnored;  // kIgnored: there is none
    bool differs = false;        // some part of the other half
    std::uint64_t values[kMostParts] = {};
};

struct StoreCounts {
    std::uint64_t silent = 0, stores = 0;
};

// Everything that values have been counted in.
struct ValueTables {
    std::vector<ValueTable> by_site;
    // An instruction that belongs to several blocks, which can depend on what else is captured, has
    // several sites for a list: the first of them by the instruction's pc and list.
    std::map<std::pair<std::uint64_t, std::uint8_t>, std::uint32_t> first_sites;
    std::vector<StoreCounts> by_instr;  // at least as long as there are instructions
    StoreCounts of_all_instrs;
    StoreHalf half;
    std::vector<std::pair<std::uint32_t, Counted>> spilled;  // counts beyond 32 bits, by site

    ValueTables() = default;
    ValueTables(const ValueTables&) = delete;
    ValueTables& operator=(const ValueTables&) = delete;
    ~ValueTables();

    // For the next site; its instruction is at `pc`.
    void add(const ValueTable& table, std::uint64_t pc);
    // Counts all values of the records, with what the processor has.
    void count(const trace_record_t* records, std::size_t n);
    // Of the instruction and list of which this is the first site.
    Summary summary(std::uint32_t first) const;

    // What the kernels leave to others: the value has no counter yet, or it is full.
    void count_slowly(std::uint32_t first, std::uint64_t value);
};

// The inner loop, by instruction set: value_kernel.h.
using ValueKernel = void (*)(ValueTables& tables, const trace_record_t* records, std::size_t n);
void count_baseline(ValueTables& tables, const trace_record_t* records, std::size_t n);
void count_avx2(ValueTables& tables, const trace_record_t* records, std::size_t n);
void count_avx512(ValueTables& tables, const trace_record_t* records, std::size_t n);

// The multiplier of splitmix64's finaliser (Steele, Lea, Flood 2014).
inline constexpr std::uint64_t kHashMultiplier = 0xBF58476D1CE4E5B9ULL;
inline constexpr unsigned kHashShift = 61;
inline constexpr std::uint32_t kMostCount = UINT32_MAX;

// What all summaries add up to, again and again during a run: only those of sites that have seen
// values since are computed anew.

struct Totals {
    std::uint64_t values = 0, zeros = 0, repeated = 0;
    std::uint64_t top = 0;  // of each instruction and list, the most frequent value
};

class RunningTotals {
  public:
    // The sites of these records have changed.
    void touch(const ValueTables& tables, const trace_record_t* records, std::size_t n);
    // Up to now, of all records that touch() was given.
    Totals of(const ValueTables& tables);

  private:
    // By the first site of an instruction and list.
    std::vector<bool> is_touched_;
    std::vector<std::uint32_t> touched_;
    std::vector<Totals> counted_;  // when it was computed last
    Totals totals_;
};

}  // namespace classic
