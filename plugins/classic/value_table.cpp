#include "plugins/classic/value_table.h"

#include "plugins/classic/value_kernel.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
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

namespace {

ValueSet& set_of(const ValueTable& table, std::uint64_t value) {
    return table.sets[value * kHashMultiplier >> kHashShift & table.mask];
}

// The eight values of the first set fit into the new sets.
void grow(ValueTable& table) {
    const ValueSet* const before = std::exchange(table.sets, new ValueSet[kSets]());
    table.mask = kSets - 1;
    for (unsigned i = 0; i < kWays; ++i) {
        ValueSet& set = set_of(table, before->values[i]);
        const auto way = std::find(set.counts, set.counts + kWays, 0U) - set.counts;
        set.values[way] = before->values[i];
        set.counts[way] = before->counts[i];
    }
    delete[] before;
}

// The most frequent value first; equal values are combined.
void sort(std::vector<Counted>& values) {
    std::sort(values.begin(), values.end(),
              [](const Counted& a, const Counted& b) { return a.value < b.value; });
    std::size_t kept = 0;
    for (const Counted& each : values) {
        if (kept > 0 && values[kept - 1].value == each.value)
            values[kept - 1].count += each.count;
        else
            values[kept++] = each;
    }
    values.resize(kept);
    std::stable_sort(values.begin(), values.end(),
                     [](const Counted& a, const Counted& b) { return a.count > b.count; });
}

ValueKernel best_kernel() {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return count_avx512;
    return __builtin_cpu_supports("avx2") ? count_avx2 : count_baseline;
}

}  // namespace

void ValueTable::free() {
    delete[] std::exchange(sets, nullptr);
}

ValueTables::~ValueTables() {
    for (ValueTable& table : by_site) table.free();
}

void ValueTables::add(const ValueTable& table, std::uint64_t pc) {
    const auto site = static_cast<std::uint32_t>(by_site.size());
    by_site.push_back(table);
    by_site[site].first = site;
    if ((table.role != Role::kCounted && table.role != Role::kStored) || table.part != 0) return;
    by_site[site].first = first_sites.try_emplace({pc, table.list}, site).first->second;
}

void ValueTables::count(const trace_record_t* records, std::size_t n) {
    static const ValueKernel kernel = best_kernel();
    kernel(*this, records, n);
}

void ValueTables::count_slowly(std::uint32_t first, std::uint64_t value) {
    ValueTable& table = by_site[first];
    if (table.sets == nullptr) {
        table.sets = new ValueSet[1]();
        table.runs = 1;  // whatever `last` was
    }
    ValueSet& set = set_of(table, value);
    auto way = std::find(set.values, set.values + kWays, value) - set.values;
    if (way == kWays) {
        way = std::find(set.counts, set.counts + kWays, 0U) - set.counts;
        if (way == kWays && table.mask != 0) return set.lower();
        if (way == kWays) {
            grow(table);
            return count_slowly(first, value);  // all nine values may belong to one set
        }
        set.values[way] = value;
        set.since[way] = set.lowered;
    }
    if (set.counts[way] == kMostCount)
        spilled.push_back({first, {value, std::exchange(set.counts[way], 0)}});
    ++set.counts[way];
}

Summary ValueTables::summary(std::uint32_t first) const {
    Summary summary;
    const ValueTable& table = by_site[first];
    summary.total = table.total;
    summary.zeros = table.zeros;
    summary.repeated = table.total - table.runs;
    for (unsigned s = 0; table.sets && s <= table.mask; ++s) {
        const ValueSet& set = table.sets[s];
        summary.error = std::max(summary.error, set.lowered);
        for (unsigned i = 0; i < kWays; ++i)
            if (const std::uint64_t seen = set.counts[i] + set.lowered - set.since[i])
                summary.values.push_back({set.values[i], seen});
    }
    for (const auto& [of, counted] : spilled)
        if (of == first) summary.values.push_back(counted);
    sort(summary.values);
    return summary;
}

void Summary::shorten(std::size_t most) {
    if (values.size() <= most) return;
    error += values[most].count;
    values.resize(most);
}

std::uint64_t Summary::rest() const {
    return std::accumulate(
        values.begin(), values.end(), total,
        [](std::uint64_t left, const Counted& each) { return left - each.count; });
}

}  // namespace classic
