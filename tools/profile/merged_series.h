// The series of several events files: those that add up become one, others stand side by side, with
// the name of the file that they come from.
#pragma once

#include "framework/events/series.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace assay {

class MergedSeries {
  public:
    // The series of another file. Throws Error if a sum exceeds 64 bits.
    void add(const std::string& path, std::span<const events::Series> series);
    // After the last one: says where series are from that are not of all files.
    void finish();

    // At most events::kMostSeries.
    const std::vector<events::Series>& series() const { return series_; }
    // How many more there would be.
    std::size_t left_out() const { return left_out_; }

  private:
    std::size_t files_ = 0, left_out_ = 0;
    std::vector<events::Series> series_;
    std::vector<std::vector<std::string>> paths_;  // that each is the sum of
};

}  // namespace assay
