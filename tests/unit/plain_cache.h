// A cache as plainly as possible, which simulations are held against: each set a list of lines, the
// most recent first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

class PlainCache {
  public:
    PlainCache(std::uint64_t line_bytes, std::uint64_t sets, std::size_t ways)
        : line_(line_bytes), sets_(sets, std::vector<std::uint64_t>(ways, 0)) {}

    // In any number of lines, from the lowest on.
    bool misses(std::uint64_t address, std::uint64_t bytes) {
        bool missed = false;
        for (std::uint64_t line = address / line_; line <= (address + bytes - 1) / line_; ++line)
            missed |= !touch(line);
        return missed;
    }
    // By the line's number; true if it was there.
    bool touch(std::uint64_t line) {
        auto& set = sets_[line % sets_.size()];
        const auto found = std::find(set.begin(), set.end(), line);
        const bool present = found != set.end();
        set.erase(present ? found : set.end() - 1);
        set.insert(set.begin(), line);
        return present;
    }
    bool is_most_recent(std::uint64_t line) const {
        return sets_[line % sets_.size()].front() == line;
    }

  private:
    std::uint64_t line_;
    std::vector<std::vector<std::uint64_t>> sets_;
};
