// What all summaries add up to, again and again during a run: only those of sites that have seen
// values since are computed anew.
#pragma once

#include "plugins/classic/value_table.h"

#include <map>
#include <utility>
#include <vector>

namespace classic {

struct Totals {
    std::uint64_t values = 0, zeros = 0, repeated = 0;
    std::uint64_t top = 0;  // of each instruction and list, the most frequent value
};

class RunningTotals {
  public:
    // These sites will have changed.
    void touch(const trace_record_t* records, std::size_t n);
    // Up to now, all of the tables that were counted in since the first touch(). `instrs`: what
    // sites of `tables` refer to.
    Totals of(ValueTables& tables, const trace_instr_t* instrs);

  private:
    // An instruction that belongs to several blocks has several sites.
    struct Place {
        std::vector<std::uint32_t> sites;
        Totals counted;  // of them, when it was computed last
        bool touched = false;
    };
    static constexpr std::uint32_t kNoPlace = UINT32_MAX;

    void touch(std::uint32_t site);
    Place* place_of(std::uint32_t site, const ValueTable& table, const trace_instr_t* instrs);

    std::vector<bool> is_touched_;          // by site
    std::vector<std::uint32_t> touched_;    // those sites
    std::vector<std::uint32_t> places_of_;  // by site: index in places_
    std::vector<Place> places_;
    std::map<std::pair<std::uint64_t, std::uint8_t>, std::uint32_t> by_pc_and_list_;
    Totals totals_;
};

}  // namespace classic
