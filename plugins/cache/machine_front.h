// The first stage of a run with a machine. It turns records into operations on the caches.
#pragma once

#include "plugins/cache/site_counts.h"
#include "plugins/machine/first_caches.h"
#include "plugins/machine/front_end.h"
#include "plugins/machine/page_sizes.h"
#include "plugins/machine/reference.h"

#include <assay/profiler.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace cache {

// Properties of a site that the simulation looks up for each record.
struct MachineSite {
    enum class Role : std::uint8_t { kReference, kOperation, kCount, kBlock, kBlockLeft, kOther };

    machine::Reference reference(const trace_record_t& record, std::uint64_t executed) const {
        return {.kind = kind,
                .writes = writes,
                .bytes = bytes,
                .address = record.value,
                .pc = pc,
                .executed = executed};
    }
    // The record as an operation on a line.
    machine::Reference operation(const trace_record_t& record, std::uint64_t executed) const {
        return {.address = record.value,
                .pc = pc,
                .executed = executed,
                .operation = static_cast<machine::LineOperation>(bytes >> 8),
                .level = static_cast<std::uint8_t>(bytes)};
    }

    std::uint64_t pc;
    // For a reference: its size, at most that of the longest line. For an operation: the
    // LineOperation in the upper byte, the level in the lower byte.
    std::uint16_t bytes;
    Role role;
    machine::Kind kind : 7;
    bool writes : 1;
    std::uint32_t position;  // the instruction's place in its block, from 1 on; for a block, its
                             // length
};
static_assert(sizeof(MachineSite) == 16);

class MachineSites {
  public:
    std::size_t size() const { return sites_.size(); }
    const MachineSite& operator[](std::size_t site) const { return sites_[site]; }
    // True if `sites` sites fit without moving the known ones.
    bool has_room(std::size_t sites) const { return sites <= sites_.capacity(); }
    // Adds the sites that the trace got since the last call.
    void learn(const assay::Trace& trace, const Code& code);
    bool have_operations() const { return have_operations_; }

  private:
    std::vector<MachineSite> sites_;
    bool have_operations_ = false;
};

// Consecutive records of one thread: no record of another core comes between them.
struct MachinePart {
    // Takes the trace's records. `keeps`: copies them, because they are needed after process()
    // returns.
    void fill(const assay::Trace& trace, const MachineSites& sites, std::uint32_t on_core,
              bool is_last, bool keeps);

    std::uint32_t thread = 0, core = 0;
    bool ends_thread = false;
    bool operates = false;  // the records contain operations on lines
    std::span<const trace_record_t> records;
    std::span<const std::uint32_t> contexts;  // one for each record, or empty
    std::span<const trace_marker_t> markers;
    // MachineFront sets these. `has_steps`: `steps` and `said`, the records of sites that count,
    // are set. `executed` has, with late prefetches, the number of instructions that the core had
    // executed at each record.
    bool has_steps = false;
    machine::Steps steps;
    std::vector<std::uint32_t> said;
    std::vector<std::uint64_t> executed;

  private:
    std::vector<trace_record_t> kept_records_;
    std::vector<std::uint32_t> kept_contexts_;
    std::vector<trace_marker_t> kept_markers_;
};

class MachineFront {
  public:
    // The referenced objects must outlive this one. `is_apart`: prepare() runs in its own thread.
    MachineFront(const machine::Machine& machine, const machine::Columns& columns,
                 const MachineSites& sites, bool is_apart)
        : machine_(machine),
          sites_(sites),
          front_end_(machine, columns),
          uses_front_end_(front_end_.is_useful()),
          memory_(machine.transparent) {
        if (is_apart && !uses_front_end_ && machine::FirstCaches::are_independent(machine))
            first_caches_.emplace(machine, columns);
    }

    // True if prepare() finds the steps of some parts, which is worth a thread. Otherwise the
    // caches need all references.
    bool finds_steps() const { return uses_front_end_ || first_caches_; }
    bool takes_pages_from_mappings() const { return machine_.page == 0 && !machine_.tlbs.empty(); }
    // Sets the results in `part`. Throws std::bad_alloc.
    void prepare(MachinePart& part);

  private:
    void follow(MachinePart& part, const trace_marker_t& marker);
    // Updates the two numbers of executed instructions for a record that is not a reference: that
    // of the core, and that of the core before the thread's current block.
    static void note_executed(const MachineSite& site, const trace_record_t& record,
                              std::uint64_t& executed, std::uint64_t& block_begin);

    const machine::Machine& machine_;
    const MachineSites& sites_;
    machine::FrontEnd front_end_;
    const bool uses_front_end_;
    std::optional<machine::FirstCaches> first_caches_;  // used instead of front_end_
    machine::MappedMemory memory_;
    // With late prefetches: the number of instructions that each core has executed, including all
    // instructions of the blocks that its threads are in; and, by thread, the number before its
    // current block.
    std::unordered_map<std::uint32_t, std::uint64_t> executed_;
    std::unordered_map<std::uint32_t, std::uint64_t> block_begins_;
};

}  // namespace cache
