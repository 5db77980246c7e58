// A run with a machine of a machine file: what it captures, and what is counted for each site.
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
    // Throws std::bad_alloc, and std::runtime_error if a library of the user's is unusable.
    MachineRun(machine::Machine machine, bool count_iterations);

    std::span<const vp_event_t> events() const { return columns_.events(); }
    std::span<const vp_derived_t> derived() const { return columns_.derived(); }

    void capture(assay::Captures& wanted) const;
    void process(assay::Trace& trace);
    bool finish_more(assay::Trace& trace, assay::Samples& samples);
    std::string summary(std::span<const std::uint64_t> totals) const;

  private:
    // Of a TRACE_SITE_COUNT, in the first two columns of its row.
    enum { kReferences, kEndedEarly };

    void learn(const assay::Trace& trace, const Code& code);
    struct Records;
    void simulate(MachinePart& part);
    void simulate_all(const Records& records);
    // What is counted of a site: in a context, or, if that is null, as a whole.
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
    std::vector<std::uint64_t> counts_;  // row by row, by column
    assay::ContextRows rows_;            // with contexts; else a site's row has its index
    BlockWalk walk_;
    Pipeline<MachinePart> pipeline_;  // of front_ and simulate()
    bool took_first_caches_ = false;  // just now
};

}  // namespace cache
