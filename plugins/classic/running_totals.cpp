#include "plugins/classic/running_totals.h"

#include <cstdint>
#include <utility>

namespace classic {

void RunningTotals::touch(std::uint32_t site) {
    if (site >= is_touched_.size()) is_touched_.resize(site + std::size_t{1});
    if (is_touched_[site]) return;
    is_touched_[site] = true;
    touched_.push_back(site);
}

void RunningTotals::touch(const trace_record_t* records, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) touch(records[i].site);
}

// Nullptr if the site's values are not counted.
RunningTotals::Place* RunningTotals::place_of(std::uint32_t site, const ValueTable& table,
                                              const trace_instr_t* instrs) {
    if (table.role != Role::kCounted && table.role != Role::kStored) return nullptr;
    if (site >= places_of_.size()) places_of_.resize(site + std::size_t{1}, kNoPlace);
    std::uint32_t& index = places_of_[site];
    if (index == kNoPlace) {
        const auto next = static_cast<std::uint32_t>(places_.size());
        index =
            by_pc_and_list_.try_emplace({instrs[table.instr].pc, table.list}, next).first->second;
        if (index == next) places_.emplace_back();
        places_[index].sites.push_back(site);
    }
    return &places_[index];
}

Totals RunningTotals::of(ValueTables& tables, const trace_instr_t* instrs) {
    std::vector<std::uint32_t> changed;
    for (const std::uint32_t site : touched_) {
        is_touched_[site] = false;
        Place* const place = place_of(site, tables.by_site[site], instrs);
        if (place == nullptr || std::exchange(place->touched, true)) continue;
        changed.push_back(places_of_[site]);
    }
    touched_.clear();
    for (const std::uint32_t index : changed) {
        Place& place = places_[index];
        place.touched = false;
        Summary summary;
        for (const std::uint32_t site : place.sites) summary.add(tables.summary(site));
        summary.finish(SIZE_MAX);
        const Totals now{summary.total, summary.zeros, summary.repeated,
                         summary.values.empty() ? 0 : summary.values[0].count};
        totals_.values += now.values - place.counted.values;
        totals_.zeros += now.zeros - place.counted.zeros;
        totals_.repeated += now.repeated - place.counted.repeated;
        totals_.top += now.top - place.counted.top;
        place.counted = now;
    }
    return totals_;
}

}  // namespace classic
