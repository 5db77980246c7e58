// What a run for check-plugin shows to the profiler: a made-up trace, or a recorded one.
#pragma once

#include "framework/collector/profilers/trace_parser.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::check {

class TrialTrace {
  public:
    // What one call of vp_prof_process is given.
    struct Buffer {
        std::uint32_t thread = 0;
        std::vector<trace_record_t> records;
        std::vector<std::uint32_t> contexts;  // by record; for who captures calls
        std::vector<trace_marker_t> markers;
        std::span<const collector::Interval> intervals;
        std::uint32_t misses = 0;  // TRACE_FETCH_MISSES and TRACE_DATA_MISSES
    };

    virtual ~TrialTrace() = default;

    // As they are now.
    virtual std::vector<trace_block_t> blocks() const = 0;
    virtual std::vector<trace_instr_t> instrs() const = 0;
    virtual std::vector<trace_site_t> sites() const = 0;
    virtual std::vector<trace_context_t> contexts() const = 0;
    virtual const collector::AddressMap& addresses() const = 0;
    // Executions by instruction. `times`: of each, in a made-up trace.
    virtual std::vector<std::uint64_t> counts(std::uint64_t times) const = 0;
    // By block; empty if nobody predicts.
    virtual std::vector<std::uint64_t> mispredictions() const { return {}; }
    // At the end: intervals that are not complete.
    virtual std::span<const collector::Interval> rests() { return {}; }

    // The profiler has asked for trace_capture_runs.
    virtual void leave_out() {}
};

}  // namespace assay::check
