// Finds the references whose filter check fails often; with Filter::kRuns, those that often begin a
// new run. The .cpp has two strategies of references.h, too: of misses, and of footprints.
#pragma once

#include "framework/driver/native/trace/trace_tables.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::native {

class MissSampler {
  public:
    explicit MissSampler(const TraceTables& trace) : trace_(trace) {}

    // Looks at a part of the full buffer. Returns sites that were found to miss often, some of
    // them perhaps again; valid until the next call.
    std::span<const std::uint32_t> sample(std::span<const trace_record_t> buffer);
    // An estimate from what was sampled so far.
    bool misses_often(std::uint32_t site) const;

  private:
    std::uint32_t counted_as(std::uint32_t site) const;
    void find_all(std::uint32_t site);

    const TraceTables& trace_;
    std::vector<std::uint16_t> misses_;  // sampled ones, by site; with Filter::kRuns by run
    // With Filter::kRuns, which needs no block counts for that: what their records stand for.
    std::vector<std::uint64_t> references_;
    std::vector<std::uint32_t> found_;
};

}  // namespace assay::native
