// The values of one operand of one instruction: the number of values, of zeros, of values equal to
// the one before, and the most frequent values.
//
// There are eight sets of eight counters, and each value belongs to one set. A set follows the
// algorithm of Misra and Gries ("Finding repeated elements", Science of Computer Programming 2,
// 1982): a new value takes a counter that is 0. If no counter is 0, all eight are lowered by one,
// and the new value is dropped. A set records how much a counter was lowered since its value took
// it, and adds this to the count of the value. Counts are therefore exact for sets with at most
// eight values, and for values that have kept their counter from the beginning. Any other count is
// too low by at most a ninth of the values of the set. Up to eight values use only one set.
//
// Counts are therefore exact as long as a set has at most eight values, and for every value that
// has kept its counter from the beginning. Any other count is too low by at most a ninth of the
// values that the set has seen. Up to eight values share one set.
//
// Also formats values for people.
#pragma once

#include "assay/trace_types.h"
#include "assay/vprofiler.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace classic {

struct Counted {
    std::uint64_t value, count;
};

// The final result: each value was seen at least `count` times, and no value was seen more than
// `error` times beyond that.
struct Summary {
    std::uint64_t total = 0, zeros = 0, repeated = 0;
    std::uint64_t error = 0;
    std::vector<Counted> values;  // the most frequent value first

    // Keeps only the `most` most frequent values and adjusts the error.
    void shorten(std::size_t most);
    // The count of the most frequent value.
    std::uint64_t top() const { return values.empty() ? 0 : values[0].count; }
    // The number of values that no count includes.
    std::uint64_t rest() const;
};

inline constexpr unsigned kWays = 8, kSets = 8;

struct alignas(64) ValueSet {
    std::uint64_t values[kWays];
    std::uint32_t counts[kWays];             // 0: free
    std::uint64_t lowered;                   // total by which all counters have been lowered
    alignas(64) std::uint64_t since[kWays];  // `lowered` when the value took over its counter

    // Call it for a value without a counter if no counter is free.
    void lower() {
        for (std::uint32_t& count : counts) --count;
        ++lowered;
    }
};

// The use of a site's values. Values of the roles after kCounted are also compared: the values that
// a store writes with those that were there.
enum class Role : std::uint8_t { kIgnored, kCounted, kStored, kOverwritten };

// One for each site of the trace. Copies share the sets, which free() deletes.
struct alignas(64) ValueTable {
    std::uint64_t last = 0;
    std::uint64_t total = 0, zeros = 0, runs = 0;  // values; runs of equal ones
    ValueSet* sets = nullptr;                      // null before the first value
    std::uint32_t instr = 0;
    std::uint16_t mask = 0;  // number of sets - 1
    std::uint8_t list = 0;
    Role role = Role::kIgnored;
    // For stored and overwritten values: the number of the 8-byte part, and the number of parts.
    // Only the first part counts as a value.
    std::uint8_t part = 0, parts = 1;
    // The first site of the same instruction and list. The values of all these sites are counted
    // there.
    std::uint32_t first = 0;

    void free();
};

inline constexpr unsigned kMostParts = 8;  // of 8 bytes

// A stored value and the overwritten one arrive one after the other, in any order, each part by
// part.
struct StoreHalf {
    std::uint32_t instr = 0;
    Role role = Role::kIgnored;  // kIgnored: no half has arrived
    bool differs = false;        // in some part from the other half
    std::uint64_t values[kMostParts] = {};
};

struct StoreCounts {
    std::uint64_t silent = 0, stores = 0;
};

// All tables of values.
struct ValueTables {
    std::vector<ValueTable> by_site;
    // An instruction in several blocks (their number can depend on other captures) has several
    // sites for one list. This map gives the first of them by the instruction's pc and list.
    std::map<std::pair<std::uint64_t, std::uint8_t>, std::uint32_t> first_sites;
    std::vector<StoreCounts> by_instr;  // at least one for each instruction
    StoreCounts of_all_instrs;
    StoreHalf half;
    std::vector<std::pair<std::uint32_t, Counted>> spilled;  // counts beyond 32 bits, by site

    ValueTables() = default;
    ValueTables(const ValueTables&) = delete;
    ValueTables& operator=(const ValueTables&) = delete;
    ~ValueTables();

    // Adds the table of the next site, whose instruction is at `pc`.
    void add(const ValueTable& table, std::uint64_t pc);
    // Counts all values of the records with the best kernel for this processor.
    void count(const trace_record_t* records, std::size_t n);
    // The summary of an instruction and list; `first` is their first site.
    Summary summary(std::uint32_t first) const;

    // Kernels call this if the value has no counter yet, or if its counter is full.
    void count_slowly(std::uint32_t first, std::uint64_t value);
};

// The inner loop for each instruction set: value_kernel.h.
using ValueKernel = void (*)(ValueTables& tables, const trace_record_t* records, std::size_t n);
void count_baseline(ValueTables& tables, const trace_record_t* records, std::size_t n);
void count_avx2(ValueTables& tables, const trace_record_t* records, std::size_t n);
void count_avx512(ValueTables& tables, const trace_record_t* records, std::size_t n);

// The multiplier of splitmix64's finaliser (Steele, Lea, Flood 2014).
inline constexpr std::uint64_t kHashMultiplier = 0xBF58476D1CE4E5B9ULL;
inline constexpr unsigned kHashShift = 61;
inline constexpr std::uint32_t kMostCount = UINT32_MAX;

// The sums of all summaries, for repeated use during a run: only sites with new values are computed
// again.

struct Totals {
    std::uint64_t values = 0, zeros = 0, repeated = 0;
    std::uint64_t top = 0;  // sum of the counts of the most frequent value of each instruction and
                            // list
};

class RunningTotals {
  public:
    // The sites of these records have changed.
    void touch(const ValueTables& tables, const trace_record_t* records, std::size_t n);
    // The sums over all records that touch() has received.
    Totals of(const ValueTables& tables);

  private:
    // By first site of an instruction and list.
    std::vector<bool> is_touched_;
    std::vector<std::uint32_t> touched_;
    std::vector<Totals> counted_;  // result of the last computation
    Totals totals_;
};

// The interpretation of the values of an instruction.

enum class Operand { kLoaded, kStored, kResult, kFirstSource, kSecondSource };
enum class Reading { kInteger, kSingle, kDouble };

// Decided by the opcode and its prefixes, for SSE, AVX and x87.
Reading reading_of(const trace_instr_t& instr, Operand operand);

// Integers of up to five digits are in decimal. Larger ones, such as addresses, are in hexadecimal.
std::string format(Reading reading, std::uint64_t value);

}  // namespace classic
