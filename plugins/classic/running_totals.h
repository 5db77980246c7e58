// What all summaries add up to, again and again during a run: only those of sites that have seen
// values since are computed anew.
#pragma once

#include "plugins/classic/value_table.h"

#include <vector>

namespace classic {

struct Totals {
    std::uint64_t values = 0, zeros = 0, repeated = 0;
    std::uint64_t top = 0;  // of each instruction and list, the most frequent value
};

class RunningTotals {
  public:
    // The sites of these records have changed.
    void touch(const ValueTables& tables, const trace_record_t* records, std::size_t n);
    // Up to now, of all records that touch() was given.
    Totals of(const ValueTables& tables);

  private:
    // By the first site of an instruction and list.
    std::vector<bool> is_touched_;
    std::vector<std::uint32_t> touched_;
    std::vector<Totals> counted_;  // when it was computed last
    Totals totals_;
};

}  // namespace classic
