// Divides estimated cycles by their causes. A profile without an estimate or without instructions
// uses its first event instead of cycles.
#pragma once

#include "framework/events/formula.h"
#include "framework/events/header.h"
#include "tools/profile/count_store.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::summary {

// Events that cost cycles for one reason.
struct Cause {
    std::string_view name;            // as it is shown: "data cache misses"
    std::string_view remedy;          // half a sentence; may be empty
    std::vector<std::size_t> events;  // indices in the header
};

class Cycles {
  public:
    explicit Cycles(const events::Header& header);

    const std::string& formula() const { return text_; }
    // False if the first event stands for cycles.
    bool are_estimated() const { return are_estimated_; }
    double of_row(Counts counts) const { return static_cast<double>(counts.front()); }
    // The part of a row's cycles that comes from one cause. Formulas are sums.
    double of_cause(Counts counts, const Cause& cause) const;
    // Reasons to wait that the profile counts.
    const std::vector<Cause>& causes() const { return causes_; }

  private:
    bool are_estimated_;
    std::string text_;
    std::optional<events::Formula> formula_;  // if cycles are estimated
    std::vector<Cause> causes_;
};

}  // namespace assay::summary
