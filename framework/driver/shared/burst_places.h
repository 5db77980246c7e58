// The places of the bursts of a thread (--sample), for runs and replays: they are the same in both.
#pragma once

#include "framework/trace/segment_layout.h"

#include <cstdint>

namespace assay::driver {

// Each period has one burst, with its warm-up right before it. They start at a random place such
// that the burst ends within the period.
class BurstPlaces {
  public:
    BurstPlaces() = default;
    BurstPlaces(const trace::Regions& regions, std::uint32_t thread)
        : captured_(regions.sample_burst + regions.sample_warm_up), period_(regions.sample_period) {
        constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
        random_ = (thread + 1ULL) * kOdd;                   // must not be 0
    }

    // The instructions that are not captured, from the last burst or the thread's start to the next
    // warm-up or burst.
    std::uint64_t next_rest() {
        const std::uint64_t before = next_random() % (period_ - captured_ + 1);
        const std::uint64_t rest = rest_of_period_ + before;
        rest_of_period_ = period_ - captured_ - before;
        return rest;
    }

  private:
    // xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators,
    // scrambled", ACM Transactions on Mathematical Software 42, 2016.
    std::uint64_t next_random() {
        random_ ^= random_ >> 12;
        random_ ^= random_ << 25;
        random_ ^= random_ >> 27;
        constexpr std::uint64_t kMultiplier = 0x2545f4914f6cdd1d;
        return random_ * kMultiplier;
    }

    std::uint64_t captured_ = 0, period_ = 0, random_ = 0;
    std::uint64_t rest_of_period_ = 0;  // after the last burst
};

}  // namespace assay::driver
