// Two levels of caches fed with trace records: I1 and D1, and a unified LL behind both.
#pragma once

#include "plugins/cache/geometry.h"
#include "plugins/cache/tables.h"

#include <vector>

namespace cache {

enum class InstructionSet { kBaseline, kAvx2, kAvx512 };
bool supported(InstructionSet set);
InstructionSet best_instruction_set();

class Simulator {
  public:
    // Each geometry must have a power of two of sets.
    explicit Simulator(const Geometries& geometries, InstructionSet set = best_instruction_set());
    ~Simulator();
    Simulator(const Simulator&) = delete;
    Simulator& operator=(const Simulator&) = delete;

    // `sites` is the whole table, of which the simulator already knows the beginning.
    void learn(const trace_site_t* sites, std::size_t count);
    // Records of sites that were learnt.
    void process(const trace_record_t* records, std::size_t count);

    const SiteCounts& counts(std::size_t site) const { return counts_[site]; }
    std::size_t site_count() const { return counts_.size(); }

  private:
    Tables tables_;
    Kernel kernel_;
    // References larger than this are taken as this large, so that none touches three lines.
    std::uint16_t largest_reference_;
    std::vector<SiteCode> codes_;
    std::vector<SiteCounts> counts_;
};

}  // namespace cache
