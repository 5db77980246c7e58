// The most frequent values of a stream, in bounded memory: the Space-Saving algorithm (Metwally,
// Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams",
// ICDT 2005), with weights.
//
// There are kTracked counters. A value that has none takes over the one with the least count, and
// that count as its own possible error. So what a counter has beyond its error is no more than how
// often its value was seen; and no value was seen more often than that by more than the least
// count, which is at most the total divided by kTracked.
#pragma once

#include "framework/events/hotlist.h"

#include <cstdint>
#include <vector>

namespace assay::collector {

class TopValues {
  public:
    static constexpr std::size_t kTracked = 64;

    void add(std::uint64_t value, std::uint64_t weight);
    // Values seen that nobody knows any more; none of them can be one value more than `error`
    // times.
    void add_rest(std::uint64_t weight, std::uint64_t error);
    // All were seen `factor` times as often: at least 1. The last thing to be done with them.
    void scale(double factor);
    // The list has no name.
    events::Hotlist list() const;

  private:
    struct Counter {
        std::uint64_t value, count, error;
    };
    // The most recently added first, nearly: what is frequent is found early.
    std::vector<Counter> counters_;
    bool full_ = false;  // some value has lost its counter
    std::uint64_t total_ = 0, rest_error_ = 0;
};

}  // namespace assay::collector
