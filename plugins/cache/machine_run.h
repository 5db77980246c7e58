// A run that simulates the machine of a machine file: its captures and its counts for each site.
#pragma once

#include "plugins/cache/machine_front.h"
#include "plugins/cache/pipeline.h"
#include "plugins/cache/site_counts.h"
#include "plugins/machine/columns.h"
#include "plugins/machine/hierarchy.h"
#include "plugins/machine/machine.h"
#include "plugins/machine/thread_placement.h"

#include <assay/context_rows.hpp>
#include <assay/profiler.hpp>

#include <span>
#include <string>
#include <vector>

namespace cache {

class MachineRun {
  public:
    // Throws std::bad_alloc, and std::runtime_error if one of the user's libraries is unusable.
    MachineRun(machine::Machine machine, bool count_iterations);

    std::span<const vp_event_t> events() const { return columns_.events(); }
    std::span<const vp_derived_t> derived() const { return columns_.derived(); }

    void capture(assay::Captures& wanted) const;
    void process(assay::Trace& trace);
    bool finish_more(assay::Trace& trace, assay::Samples& samples);
    std::string summary(std::span<const std::uint64_t> totals) const;

  private:
    // The first two columns in the row of a TRACE_SITE_COUNT.
    enum { kReferences, kEndedEarly };

    void learn(const assay::Trace& trace, const Code& code);
    struct Records;
    void simulate(MachinePart& part);
    void simulate_all(const Records& records);
    // The counts of a site in a context. If `context` is nullptr, those of the site as a whole.
    std::uint64_t* row_of(std::uint32_t site, const std::uint32_t* context);
    // Calls `visit(context, counts)` for each context that the site was in, or once with 0.
    template <typename Visit>
    void each_context(std::size_t site, const Visit& visit) const;
    void count_site(const assay::Trace& trace, const Code& code, std::size_t at,
                    assay::Samples& samples) const;

    const machine::Machine machine_;
    const bool count_iterations_;
    const machine::Columns columns_;
    machine::Hierarchy hierarchy_;
    machine::ThreadPlacement placement_;
    MachineSites sites_;
    MachineFront front_;
    std::vector<std::uint64_t> counts_;  // rows of columns
    assay::ContextRows rows_;            // used with contexts; otherwise a site's index is its row
    BlockWalk walk_;
    Pipeline<MachinePart> pipeline_;  // first front_, then simulate()
    bool took_first_caches_ = false;  // since the last call of process()
};

}  // namespace cache
