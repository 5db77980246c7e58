// The values that profilers have returned: the most frequent ones, by the row of the sample
// database and by list.
#pragma once

#include "framework/events/hotlist.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::collector {

// The most frequent values of a stream, in bounded memory: the Space-Saving algorithm (Metwally,
// Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams",
// ICDT 2005), with weights.
//
// There are kTracked counters. A value that has none takes over the one with the least count, and
// that count as its own possible error. So what a counter has beyond its error is no more than how
// often its value was seen; and no value was seen more often than that by more than the least
// count, which is at most the total divided by kTracked.
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

// By the row of the sample database and by list.
class Hotlists {
  public:
    // `list` is a number that all profilers' lists have together.
    TopValues& of(std::uint32_t row, std::uint32_t list) { return rows_[row][list]; }
    bool empty() const { return rows_.empty(); }
    // Calls `visit(row, list, values)` of each.
    template <typename Visit>
    void for_each(const Visit& visit) const {
        for (const auto& [row, lists] : rows_)
            for (const auto& [number, values] : lists) visit(row, number, values);
    }
    // The row's lists that have a name in `names`, by their number; "" leaves a list out.
    std::vector<events::Hotlist> named(std::uint32_t row,
                                       const std::vector<std::string>& names) const;

    // All values were seen `factor` times as often.
    void scale(double factor) {
        for (auto& [row, lists] : rows_)
            for (auto& [number, values] : lists) values.scale(factor);
    }

  private:
    std::unordered_map<std::uint32_t, std::unordered_map<std::uint32_t, TopValues>> rows_;
};

}  // namespace assay::collector
