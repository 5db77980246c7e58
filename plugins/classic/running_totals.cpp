#include "plugins/classic/running_totals.h"

#include <cstdint>
#include <utility>

namespace classic {

void RunningTotals::touch(const ValueTables& tables, const trace_record_t* records, std::size_t n) {
    is_touched_.resize(tables.by_site.size());
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t first = tables.by_site[records[i].site].first;
        if (is_touched_[first]) continue;
        is_touched_[first] = true;
        touched_.push_back(first);
    }
}

Totals RunningTotals::of(const ValueTables& tables) {
    counted_.resize(tables.by_site.size());
    for (const std::uint32_t first : touched_) {
        is_touched_[first] = false;
        const Summary summary = tables.summary(first);
        const Totals now{summary.total, summary.zeros, summary.repeated, summary.top()};
        const Totals before = std::exchange(counted_[first], now);
        totals_.values += now.values - before.values;
        totals_.zeros += now.zeros - before.zeros;
        totals_.repeated += now.repeated - before.repeated;
        totals_.top += now.top - before.top;
    }
    touched_.clear();
    return totals_;
}

}  // namespace classic
