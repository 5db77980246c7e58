// Lines that are fetched more than once, in bounded memory: of each arena those that are fetched
// most often, with what fetched and evicted them the last times.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace used_bytes {

// A place in the program from which lines are fetched: an instruction in a calling context.
using PointNumber = std::uint32_t;
inline constexpr PointNumber kNoPoint = UINT32_MAX;

// What is remembered of a line: for its last stay in the cache.
struct LineHistory {
    std::uint32_t fetches = 0;           // in all
    std::uint32_t fetches_in_arena = 0;  // since it belongs to that arena
    std::uint32_t arena = 0;
    PointNumber fetched_by = kNoPoint;
    PointNumber evicted_by = kNoPoint;  // kNoPoint while it is in the cache
};

// How many lines were fetched how often.
using Histogram = std::map<std::uint32_t, std::uint64_t>;

class MostFetched {
  public:
    static constexpr std::size_t kLines = 16;
    static constexpr std::size_t kStays = 4;

    struct Stay {
        PointNumber fetched_by, evicted_by;
    };
    struct Line {
        std::uint64_t line = 0;
        std::uint32_t fetches = 0;
        std::array<Stay, kStays> stays{};  // the last ones, that of fetch n at n modulo kStays

        // How many of the last fetches are known: two at least, and those since the line got in.
        std::uint32_t known() const;
    };

    // The line is fetched again: `history` is that of before, `by` fetches it now.
    void fetched_again(std::uint64_t line, const LineHistory& history, PointNumber by);

    // Those most often fetched first.
    std::vector<Line> sorted() const;

  private:
    Line* find(std::uint64_t line);

    std::vector<Line> lines_;
    std::uint32_t fewest_ = 0;  // of the lines, if there are kLines
};

}  // namespace used_bytes
