#include "tools/summary/cycles.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace assay::summary {

namespace {

struct NamedCause {
    std::string_view name, remedy;
    std::vector<std::string_view> events;
};

const std::vector<NamedCause>& named_causes() {
    static const std::vector<NamedCause> causes{
        {"data cache misses", "", {"D1mr", "D1mw", "D2mr", "D2mw", "D3mr", "D3mw", "DLmr", "DLmw"}},
        {"instruction cache misses",
         "the code that runs in turn is larger than the cache. Smaller code, such as -Os makes it, "
         "takes less",
         {"I1mr", "I2mr", "I3mr", "ILmr"}},
        {"mispredicted branches",
         "what they decide follows no pattern. Sorted data, or arithmetic instead of branches, "
         "take "
         "less",
         {"Bcm", "Bim", "Brm"}},
        {"page walks and TLB misses",
         "the data are on many pages. Data that are used together on one page, or huge pages, take "
         "less",
         {"ITLBm", "DTLBm", "ITLB2m", "DTLB2m", "STLBm", "Walks"}},
        {"lines of other cores", "", {"Transfers", "Upgrades"}}};
    return causes;
}

std::optional<std::size_t> index_of(const events::Header& header, std::string_view event) {
    const auto found = std::find_if(header.events.begin(), header.events.end(),
                                    [&](const events::Event& e) { return e.name == event; });
    if (found == header.events.end()) return std::nullopt;
    return static_cast<std::size_t>(found - header.events.begin());
}

}  // namespace

Cycles::Cycles(const events::Header& header)
    : are_estimated_(!header.events.front().formula.empty() && index_of(header, "Ir")),
      text_(are_estimated_ ? header.events.front().formula : header.events.front().name) {
    if (!are_estimated_) return;
    formula_.emplace(text_, header.events);
    for (const NamedCause& named : named_causes()) {
        Cause cause{named.name, named.remedy, {}};
        for (const std::string_view event : named.events)
            if (const auto index = index_of(header, event)) cause.events.push_back(*index);
        if (!cause.events.empty()) causes_.push_back(std::move(cause));
    }
}

double Cycles::of_cause(Counts counts, const Cause& cause) const {
    std::vector<std::uint64_t> only(counts.size());
    for (const std::size_t event : cause.events) only[event] = counts[event];
    return formula_ ? formula_->value(only).value_or(0) : 0;
}

}  // namespace assay::summary
