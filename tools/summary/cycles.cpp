#include "tools/summary/cycles.h"

#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace assay::summary {

namespace {

// Cycles of one event beyond those of executing the instruction. They are the weights of
// KCachegrind's estimate, rounded up for mispredictions.
struct Weight {
    std::string_view event;
    unsigned cycles;
};
constexpr std::array kWeights{Weight{"I1mr", 10},  Weight{"D1mr", 10},  Weight{"D1mw", 10},
                              Weight{"ILmr", 100}, Weight{"DLmr", 100}, Weight{"DLmw", 100},
                              Weight{"Bcm", 15},   Weight{"Bim", 15},   Weight{"Brm", 15}};

struct NamedCause {
    std::string_view name;
    std::vector<std::string_view> events;
};

const std::vector<NamedCause>& named_causes() {
    static const std::vector<NamedCause> causes{
        {"data cache misses", {"D1mr", "D1mw", "D2mr", "D2mw", "D3mr", "D3mw", "DLmr", "DLmw"}},
        {"instruction cache misses", {"I1mr", "I2mr", "I3mr", "ILmr"}},
        {"mispredicted branches", {"Bcm", "Bim", "Brm"}},
        {"page walks and TLB misses", {"ITLBm", "DTLBm", "ITLB2m", "DTLB2m", "STLBm", "Walks"}},
        {"lines of other cores", {"Transfers", "Upgrades"}}};
    return causes;
}

std::optional<std::size_t> index_of(const events::Header& header, std::string_view event) {
    const auto found = std::find_if(header.events.begin(), header.events.end(),
                                    [&](const events::Event& e) { return e.name == event; });
    if (found == header.events.end()) return std::nullopt;
    return static_cast<std::size_t>(found - header.events.begin());
}

// Returns Ir + 10 (I1mr + D1mr) and so on, with the events that the profile has.
std::string weighted_sum(const events::Header& header) {
    std::string text = "Ir";
    for (std::size_t i = 0; i < kWeights.size();) {
        const unsigned cycles = kWeights[i].cycles;
        std::vector<std::string> events;
        for (; i < kWeights.size() && kWeights[i].cycles == cycles; ++i)
            if (index_of(header, kWeights[i].event)) events.emplace_back(kWeights[i].event);
        if (!events.empty()) text += fmt::format(" + {} * ({})", cycles, join(events, " + "));
    }
    return text;
}

std::string formula_for(const events::Header& header) {
    if (!index_of(header, "Ir")) return header.events.front().name;
    for (const events::Derived& figure : header.derived)
        if (figure.name == "estimated cycles" &&
            events::is_computable(figure.formula, header.events))
            return figure.formula;
    return weighted_sum(header);
}

}  // namespace

Cycles::Cycles(const events::Header& header)
    : are_estimated_(index_of(header, "Ir").has_value()),
      text_(formula_for(header)),
      formula_(text_, header.events) {
    if (!are_estimated_) return;
    for (const NamedCause& named : named_causes()) {
        Cause cause{named.name, {}};
        for (const std::string_view event : named.events)
            if (const auto index = index_of(header, event)) cause.events.push_back(*index);
        if (!cause.events.empty()) causes_.push_back(std::move(cause));
    }
}

double Cycles::of_cause(Counts counts, const Cause& cause) const {
    std::vector<std::uint64_t> only(counts.size());
    for (const std::size_t event : cause.events) only[event] = counts[event];
    return of_row(only);
}

}  // namespace assay::summary
