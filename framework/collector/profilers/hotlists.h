// The values that profilers have returned, by the row of the sample database and by list.
#pragma once

#include "framework/collector/profilers/top_values.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::collector {

class Hotlists {
  public:
    // `list` is a number that all profilers' lists have together.
    TopValues& of(std::uint32_t row, std::uint32_t list) { return rows_[row][list]; }
    bool empty() const { return rows_.empty(); }
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
