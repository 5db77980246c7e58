// Finds the references whose filter check fails often. With Filter::kRuns, finds those that often
// begin a new run. The .cpp also has the strategies of references.h for misses and for footprints.
#pragma once

#include "framework/driver/native/trace/thread_trace.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::native {

class MissSampler {
  public:
    explicit MissSampler(const TraceTables& trace) : trace_(trace) {}

    // Looks at a part of the full buffer. Returns sites that miss often. It may return the same
    // site several times. The span is valid until the next call.
    std::span<const std::uint32_t> sample(std::span<const trace_record_t> buffer);
    // An estimate from all samples so far.
    bool misses_often(std::uint32_t site) const;

  private:
    std::uint32_t counted_as(std::uint32_t site) const;
    void find_all(std::uint32_t site);

    const TraceTables& trace_;
    std::vector<std::uint16_t> misses_;  // sampled misses, by site; with Filter::kRuns, by run
    // With Filter::kRuns: the references that the sampled records stand for. Runs therefore need no
    // block counts.
    std::vector<std::uint64_t> references_;
    std::vector<std::uint32_t> found_;
};

}  // namespace assay::native
