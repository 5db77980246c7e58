// The tables of the simulation's inner loop. They are plain memory in a layout that makes the loop
// fast.
#pragma once

#include "assay/trace_types.h"

#include <cstddef>
#include <cstdint>

namespace cache {

// Sets of tags start at multiples of this many tags: one line of the processor's own cache.
inline constexpr std::uint32_t kTagsPerBlock = 8;

// One cache. The tag of a line is its whole number, address / line size. The tags of a set are
// contiguous, the most recent first. Unused tags follow, up to a whole block.
struct Level {
    std::uint64_t* tags = nullptr;
    std::uint64_t set_mask = 0;
    std::uint32_t line_shift = 0;
    std::uint32_t ways = 0;
    std::uint32_t stride = 0;  // tags from one set to the next

    std::uint64_t* set(std::uint64_t line) const { return tags + (line & set_mask) * stride; }

    void prefetch(std::uint64_t address) const {
        const std::uint64_t* const first = set(address >> line_shift);
        for (std::uint32_t i = 0; i < stride; i += kTagsPerBlock) __builtin_prefetch(first + i, 1);
    }
};

// The target and size of a site, in two bytes so that many sites fit into the processor's cache.
class SiteCode {
  public:
    enum Target : std::uint16_t { kInstruction = 0, kData = 1, kCount = 2 };

    SiteCode(Target target, std::uint16_t bytes)
        : code_(static_cast<std::uint16_t>(target << kShift | (bytes - 1))) {}

    std::uint32_t target() const { return code_ >> kShift; }
    std::uint32_t last_byte() const { return code_ & ((1u << kShift) - 1); }

  private:
    static constexpr int kShift = 14;
    std::uint16_t code_;
};

// Misses of a site, modulo 2^32: most of the millions of sites have few misses.
struct Tally {
    std::uint32_t l1_misses = 0;  // for a TRACE_SITE_COUNT: its index in Tables::variable
    std::uint32_t ll_misses = 0;
};

// Counts of a TRACE_SITE_COUNT.
struct VariableCounts {
    std::uint64_t references = 0;   // the sum of the values
    std::uint64_t ended_early = 0;  // repeated comparisons that their result ended
};

struct Tables {
    Level level1[2];   // by SiteCode::Target
    bool missed[2]{};  // by SiteCode::Target: the records are level-1 misses already
    Level ll;
    const SiteCode* codes = nullptr;
    Tally* tallies = nullptr;
    VariableCounts* variable = nullptr;
    // Called when a tally has wrapped around to 0.
    void (*carry)(void* owner, const std::uint32_t* tally) = nullptr;
    void* owner = nullptr;
};

using Kernel = void (*)(const Tables& tables, const trace_record_t* records, std::size_t count);
void simulate_baseline(const Tables& tables, const trace_record_t* records, std::size_t count);
void simulate_avx2(const Tables& tables, const trace_record_t* records, std::size_t count);
void simulate_avx512(const Tables& tables, const trace_record_t* records, std::size_t count);

}  // namespace cache
