// A run with a machine of a machine file: what it captures, and what is counted for each site.
#pragma once

#include "plugins/cache/site_counts.h"
#include "plugins/common/geometry.h"
#include "plugins/machine/columns.h"
#include "plugins/machine/hierarchy.h"
#include "plugins/machine/machine.h"
#include "plugins/machine/mapped_memory.h"
#include "plugins/machine/thread_placement.h"

#include <assay/context_rows.hpp>
#include <assay/profiler.hpp>

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace cache {

// The shapes of I1, D1 and LL, if the machine has nothing beyond them that the profiler's own
// simulation (simulator.h), which is faster, does not know.
std::optional<Geometries> plain_shapes(const machine::Machine& machine);

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
    // What the simulation needs to know of a site.
    struct Site {
        enum class Role : std::uint8_t { kReference, kCount, kBlock, kBlockLeft, kOther };
        Role role;
        machine::Kind kind;
        bool writes;
        std::uint32_t bytes;
        std::uint64_t pc;
        std::uint32_t position;  // of its instruction in its block, from 1 on
        std::uint32_t length;    // of a block, in instructions
    };
    // Of a TRACE_SITE_COUNT, in the first two columns of its row.
    enum { kReferences, kEndedEarly };

    bool filter_loses_nothing() const;
    bool takes_pages_from_mappings() const { return machine_.page == 0 && !machine_.tlbs.empty(); }
    void follow(const assay::Trace& trace, const trace_marker_t& marker);
    void learn(const Code& code);
    // What a record that is no reference says of how many instructions a core has executed, and of
    // how many before its thread's present block.
    static void note_executed(const Site& site, const trace_record_t& record,
                              std::uint64_t& executed, std::uint64_t& block_begin);
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
    machine::MappedMemory memory_;
    // With late prefetches: how many instructions each core has executed, all of the blocks that
    // its threads are in among them; and, by thread, how many before the thread's present block.
    std::unordered_map<std::uint32_t, std::uint64_t> executed_;
    std::unordered_map<std::uint32_t, std::uint64_t> block_begins_;
    std::vector<Site> sites_;
    std::vector<std::uint64_t> counts_;  // row by row, by column
    assay::ContextRows rows_;            // with contexts; else a site's row has its index
    BlockWalk walk_;
};

}  // namespace cache
