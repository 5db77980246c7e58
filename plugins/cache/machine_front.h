// The first stage of a run with a machine: from records to what its caches have to do.
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

// What the simulation needs to know of a site: it is looked up for each record.
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
    // On a line.
    machine::Reference operation(const trace_record_t& record, std::uint64_t executed) const {
        return {.address = record.value,
                .pc = pc,
                .executed = executed,
                .operation = static_cast<machine::LineOperation>(bytes >> 8),
                .level = static_cast<std::uint8_t>(bytes)};
    }

    std::uint64_t pc;
    // Of a reference: cut as long as the longest line. Of an operation: what it is, and behind it a
    // byte with the level.
    std::uint16_t bytes;
    Role role;
    machine::Kind kind : 7;
    bool writes : 1;
    std::uint32_t position;  // of its instruction in its block, from 1 on; of a block, its length
};
static_assert(sizeof(MachineSite) == 16);

class MachineSites {
  public:
    std::size_t size() const { return sites_.size(); }
    const MachineSite& operator[](std::size_t site) const { return sites_[site]; }
    // Whether those that are known stay where they are when there are so many.
    bool has_room(std::size_t sites) const { return sites <= sites_.capacity(); }
    // What is new.
    void learn(const assay::Trace& trace, const Code& code);
    // Whether there are operations on lines among them.
    bool have_operations() const { return have_operations_; }

  private:
    std::vector<MachineSite> sites_;
    bool have_operations_ = false;
};

// Records of one thread, which no other core's come between.
struct MachinePart {
    // The next of a trace. `keeps`: it is needed behind the call to process().
    void fill(const assay::Trace& trace, const MachineSites& sites, std::uint32_t on_core,
              bool is_last, bool keeps);

    std::uint32_t thread = 0, core = 0;
    bool ends_thread = false;
    bool operates = false;  // on lines, beside references
    std::span<const trace_record_t> records;
    std::span<const std::uint32_t> contexts;  // by record, or none
    std::span<const trace_marker_t> markers;
    // What MachineFront finds: what is to be done, and the records of sites that count, if it finds
    // steps; and, with late prefetches, by record, how many instructions the core has executed.
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
    // All stay their owner's, and there. `is_apart`: prepare() has a thread of its own.
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

    // Whether it finds what is to be done for some parts, which is worth a thread: else the caches
    // need to see all references.
    bool finds_steps() const { return uses_front_end_ || first_caches_; }
    bool takes_pages_from_mappings() const { return machine_.page == 0 && !machine_.tlbs.empty(); }
    // Finds what MachinePart says. Throws std::bad_alloc.
    void prepare(MachinePart& part);

  private:
    void follow(MachinePart& part, const trace_marker_t& marker);
    // What a record that is no reference says of how many instructions a core has executed, and of
    // how many before its thread's present block.
    static void note_executed(const MachineSite& site, const trace_record_t& record,
                              std::uint64_t& executed, std::uint64_t& block_begin);

    const machine::Machine& machine_;
    const MachineSites& sites_;
    machine::FrontEnd front_end_;
    const bool uses_front_end_;
    std::optional<machine::FirstCaches> first_caches_;  // instead of front_end_
    machine::MappedMemory memory_;
    // With late prefetches: how many instructions each core has executed, all of the blocks that
    // its threads are in among them; and, by thread, how many before the thread's present block.
    std::unordered_map<std::uint32_t, std::uint64_t> executed_;
    std::unordered_map<std::uint32_t, std::uint64_t> block_begins_;
};

}  // namespace cache
