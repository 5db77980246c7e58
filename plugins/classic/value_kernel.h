// The inner loop that counts values. `Lanes` counts a value in its set, with the instructions for
// which the including file is compiled. Each file has its own type for it, so that the instances
// stay apart.
#pragma once

#include "plugins/classic/value_table.h"

namespace classic {

template <typename Lanes>
struct Kernel {
    // Does not branch on the value or on its equality with the value before, because such branches
    // are hard to predict.
    static void count(ValueTables& tables, std::uint32_t first, std::uint64_t value) {
        ValueTable& table = tables.by_site[first];
        ++table.total;
        table.zeros += value == 0;
        table.runs += value != table.last;
        table.last = value;
        if (table.sets == nullptr) return tables.count_slowly(first, value);
        ValueSet& set = table.sets[value * kHashMultiplier >> kHashShift & table.mask];
        if (!Lanes::count(set, value, table.mask != 0)) [[unlikely]]
            tables.count_slowly(first, value);
    }

    // Returns false if there is only one set, because more sets are made first.
    static bool lower(ValueSet& set, bool may_lower) {
        if (may_lower) set.lower();
        return may_lower;
    }

    // `same` and `free` are bit masks of the counters that have the value and of free ones. Returns
    // false if count_slowly() must do the work.
    static bool count_in(ValueSet& set, std::uint64_t value, unsigned same, unsigned free,
                         bool may_lower) {
        const unsigned found = same != 0 ? same : free;
        if (found == 0) return lower(set, may_lower);
        const int way = __builtin_ctz(found);
        if (set.counts[way] == kMostCount) [[unlikely]]
            return false;
        if (same == 0) {
            set.values[way] = value;
            set.since[way] = set.lowered;
        }
        ++set.counts[way];
        return true;
    }

    static void compare(ValueTables& tables, const ValueTable& table, std::uint64_t value) {
        StoreHalf& half = tables.half;
        if (half.role == Role::kIgnored || half.role == table.role || half.instr != table.instr) {
            half.instr = table.instr;
            half.role = table.role;
            half.differs = false;
            half.values[table.part] = value;
            return;
        }
        half.differs |= half.values[table.part] != value;
        if (table.part + 1U < table.parts) return;
        half.role = Role::kIgnored;
        const bool silent = !half.differs;
        for (StoreCounts* const counts : {&tables.by_instr[table.instr], &tables.of_all_instrs}) {
            counts->silent += silent;
            ++counts->stores;
        }
    }

    static void run(ValueTables& tables, const trace_record_t* records, std::size_t n) {
        const ValueTable* const by_site = tables.by_site.data();
        for (std::size_t i = 0; i < n; ++i) {
            const trace_record_t& record = records[i];
            const ValueTable& table = by_site[record.site];
            if (table.role != Role::kCounted) {
                if (table.role == Role::kIgnored) continue;
                compare(tables, table, record.value);
                if (table.role == Role::kOverwritten || table.part != 0) continue;
            }
            count(tables, table.first, record.value);
        }
    }
};

}  // namespace classic
