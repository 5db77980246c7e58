// The inner loop of counting values. `Lanes` finds things among a set's eight counters, with the
// instructions for which the including file is compiled; its type, which is of that file alone,
// keeps the instances apart.
#pragma once

#include "plugins/classic/value_table.h"

namespace classic {

template <typename Lanes>
struct Kernel {
    static void count(ValueTables& tables, std::uint32_t site, std::uint64_t value,
                      std::uint64_t weight) {
        const ValueTable& table = tables.by_site[site];
        if (table.sets == nullptr || weight >= kMostCount)
            return tables.count_slowly(site, value, weight);
        ValueSet& set = table.sets[value * kHashMultiplier >> kHashShift & table.mask];
        // Without a branch on whether the value has a counter: that is hard to predict.
        const unsigned same = Lanes::equal(set.values, value), free = Lanes::zero(set.counts);
        const unsigned found = same != 0 ? same : free;
        if (found == 0)
            return table.mask == 0 ? tables.count_slowly(site, value, weight)
                                   : lower(set, value, weight);
        const int way = __builtin_ctz(found);
        if (set.counts[way] >= kMostCount) return tables.count_slowly(site, value, weight);
        set.values[way] = value;
        set.since[way] = same != 0 ? set.since[way] : set.lowered;
        set.counts[way] += static_cast<std::uint32_t>(weight);
    }

    static void compare(ValueTables& tables, const ValueTable& table, std::uint64_t value) {
        StoreHalf& half = tables.half;
        if (half.role == Role::kIgnored || half.role == table.role || half.instr != table.instr) {
            half = {table.instr, table.role, value};
            return;
        }
        half.role = Role::kIgnored;
        StoreCounts& counts = tables.by_instr[table.instr];
        counts.silent += half.value == value;
        ++counts.stores;
    }

    static void run(ValueTables& tables, const trace_record_t* records, std::size_t n) {
        ValueTable* const by_site = tables.by_site.data();
        for (std::size_t i = 0; i < n; ++i) {
            const trace_record_t& record = records[i];
            ValueTable& table = by_site[record.site];
            if (table.role != Role::kCounted) {
                if (table.role == Role::kIgnored) continue;
                compare(tables, table, record.value);
                if (table.role == Role::kOverwritten) continue;
            }
            if (record.value == table.last) {
                ++table.run;
                continue;
            }
            const std::uint64_t value = table.last, weight = table.run;
            table.last = record.value;
            table.run = 1;
            table.total += weight;
            table.zeros += value == 0 ? weight : 0;
            if (weight == 0) continue;
            ++table.runs;
            count(tables, record.site, value, weight);
        }
    }
};

}  // namespace classic
