// Chooses the instructions that matter, as many as fit a screen.
#pragma once

#include "tools/list/function.h"
#include "tools/profile/profile.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::list {

// How much an instruction matters: by its counts of an event, or by the number of its values if the
// profile has no counts of instructions.
class Weight {
  public:
    Weight(const Profile& profile, std::size_t event, bool counted);

    double of(const Row& row) const;
    double of(const Function& function) const;
    double total() const { return total_; }

  private:
    const Profile& profile_;
    std::size_t event_;
    bool counted_;
    double total_ = 0;
};

struct Hottest {
    std::vector<std::vector<const Row*>> rows;  // of each function, by address
    std::size_t left_out = 0;                   // instructions that also reach the threshold
};

// `threshold`: in percent of the total. `lines`: how many all rows, their values, the names of
// functions and marks of gaps may fill. `with_sources`: each row may have a line of source. Chooses
// at least one row if one reaches the threshold.
Hottest hottest(std::span<const Function> functions, const Weight& weight, double threshold,
                std::size_t lines, bool with_sources);

}  // namespace assay::list
