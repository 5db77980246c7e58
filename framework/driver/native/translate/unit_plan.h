// What the translator is about to emit: the instructions of a unit, which registers and flags
// are live where, and at which points instrumentation goes. The planner finds all of it but the
// items, which captures place (Captures::place_items).
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/code_cache/code_watch.h"
#include "framework/driver/native/memory/memory_map.h"
#include "framework/driver/native/trace/allocation_functions.h"
#include "framework/driver/native/trace/regions.h"
#include "framework/driver/native/trace/trace_tables.h"
#include "framework/x86/decoder.h"

#include <optional>
#include <vector>

namespace assay::native {

// A data reference of a unit. Those of one group have addresses a constant apart. Or the fetch of
// instructions that make none, up to one that does.
struct PlannedReference {
    // As `number`: not one of the form's references, but a fetch.
    static constexpr std::uint8_t kCode = 2;

    std::uint16_t instr = 0;  // index in the unit
    std::uint8_t number = 0;  // which of the form's references
    std::int64_t offset = 0;  // of the address, from the group's registers at its position
    std::uint32_t bytes = 0;  // at most a line
};

// A piece of instrumentation.
struct Item {
    std::uint8_t capture = 0;  // whose it is: Captures::kNumber
    bool flags_live = false;   // at `position`
    std::uint16_t instr = 0;   // the instruction that it is about, index in the unit
    // Emitted before this instruction of the unit; at the block's end, if it has no such one.
    std::uint16_t position = 0;

    // --- Of MemoryReferences: a group of references that follow one another. If all lie in one
    //     line, the first is the only one that can find another line the most recent of its set.
    std::uint16_t reference_count = 0;
    // Not 0: of the group's first references, which are a series: each is of 8 bytes next to those
    // of the one before, as where registers are saved and restored.
    std::uint16_t series_count = 0;
    std::uint32_t first_reference = 0;  // in UnitPlan::references
    std::int64_t low = 0, high = 0;     // what they refer to, by offsets as theirs

    bool is_behind() const { return position > instr; }  // its instruction
};

// Registers and arithmetic flags whose values may still be read.
struct Live {
    std::uint16_t flags = 0;
    GprMask gprs = 0;

    friend Live operator|(Live a, Live b) {
        return {static_cast<std::uint16_t>(a.flags | b.flags),
                static_cast<GprMask>(a.gprs | b.gprs)};
    }
    friend Live operator&(Live a, Live b) {
        return {static_cast<std::uint16_t>(a.flags & b.flags),
                static_cast<GprMask>(a.gprs & b.gprs)};
    }
};

struct PlannedBlock {
    std::uint64_t pc = 0, end_pc = 0;
    std::uint16_t first = 0, count = 0;  // in UnitPlan::instructions
    std::uint32_t first_item = 0, item_count = 0;
    bool chained = false;
    bool previous_fetched = false;
    bool checked = false;  // compares itself with the memory: CodeWatch
    // With Bursts: the unit goes on where its branch is taken, with another copy of blocks that it
    // has already; and this is such a copy.
    bool goes_on_taken = false;
    bool copy = false;
    bool in_short_loop = false;  // of the unit: its counter is soon incremented again
    // See Regions.
    bool enters_function = false;
    bool allocates = false;  // of AllocationFunctions
    bool counted_down = false;
    bool counted_in_slice = false;
    bool counted_in_interval = false;  // in its interval, whichever way leads to it
    std::uint16_t counted_beyond = 0;  // then: instructions of other units, too

    // Where control leaves it, if that is asked for (Capture::kNeedsLiveOnWays): to the target of
    // the conditional branch that it ends with, and otherwise.
    Live live_if_taken, live_otherwise;

    // Whatever leads to it has to arrive at its very beginning.
    std::uint16_t end() const { return static_cast<std::uint16_t>(first + count); }
    bool has_gate() const { return checked || has_boundary(); }
    // See Boundaries.
    bool has_boundary() const {
        return enters_function || allocates || counted_down || counted_in_slice ||
               counted_in_interval;
    }
};

struct UnitPlan {
    Version version = kCollecting;
    bool landing = false;  // indirect branches arrive at the first block: check them there
    std::vector<Instruction> instructions;
    std::vector<PlannedBlock> blocks;
    std::vector<Item> items;
    std::vector<PlannedReference> references;
    bool leaves_functions = false;  // returns and jumps look whether they do: Regions, Allocations
    bool counts_at_exits = false;   // instructions, where it is left: Bursts
    // Before each instruction.
    std::vector<std::uint16_t> flags_live;
    std::vector<GprMask> gprs_live;

    void clear();
    const MemoryReference& form_of(const PlannedReference& reference) const {
        return reference.number == PlannedReference::kCode
                   ? kCodeForm
                   : instructions[reference.instr].form->references[reference.number];
    }
    bool collects() const { return version != kPlain; }

  private:
    static constexpr MemoryReference kCodeForm{};  // an address known now
};

class Planner {
  public:
    Planner(Decoder& decoder, const MemoryMap& memory, CodeWatch& watch, CodeCache& cache,
            const Regions& regions, const AllocationFunctions& allocation_functions,
            const TraceTables& trace)
        : decoder_(decoder),
          memory_(memory),
          watch_(watch),
          cache_(cache),
          regions_(regions),
          allocation_functions_(allocation_functions),
          trace_(trace) {}

    // Plans a new unit that begins at `pc`. False if there is no instruction. `landing`: see
    // UnitPlan.
    bool plan(std::uint64_t pc, Version version, bool landing, UnitPlan& out);
    // Plans the one instruction at `pc`, whose memory is not watched.
    bool plan_alone(std::uint64_t pc, Version version, UnitPlan& out);
    // Plans an existing unit again, with the same blocks.
    void replan(const Unit& unit, UnitPlan& out);

    // True if the code at `pc` may read an arithmetic flag before writing it, as far as a look at
    // the next `limit` instructions, fewer behind branches, tells.
    bool reads_flags(std::uint64_t pc, unsigned limit);
    // By the psABI flags carry nothing from callers to functions or back, and instrumentation
    // relies on that until a call is about to run whose continuation reads a flag, or a popf; then
    // it keeps them across all calls. Such an instruction is the first of its block, and
    // must_keep_flags() says so before the block is translated.
    bool must_keep_flags(std::uint64_t pc);
    // Where nothing is captured, nothing changes them.
    bool flags_cross_calls() const { return flags_cross_calls_ || trace_.spec().captures == 0; }
    void set_flags_cross_calls() { flags_cross_calls_ = true; }
    void forget_code() {
        reads_flags_.clear();
        live_.clear();
    }

  private:
    void begin(UnitPlan& out, Version version) const;
    bool decode_block(std::uint64_t pc, UnitPlan& out, unsigned limit);
    void set_gates(PlannedBlock& block, const UnitPlan& plan) const;
    void count_loops(UnitPlan& plan) const;
    void count_beyond(UnitPlan& plan) const;
    bool watch(std::uint64_t begin, std::uint64_t end);
    bool is_changeable(std::uint64_t pc) const;
    bool enters(std::uint64_t pc) const;
    bool looks_for_left() const;
    bool counts_slices() const;
    std::uint64_t continuation(const UnitPlan& plan, const PlannedBlock& block) const;
    static bool goes_round(const UnitPlan& plan);
    bool reads(std::uint16_t pending, std::uint64_t pc, unsigned limit);
    bool relies_on_flags(const Instruction& instruction);
    std::uint16_t flags_across_calls() const { return flags_cross_calls() ? kArithmeticFlags : 0; }
    Live live_after(const Instruction& last, unsigned branches,
                    const std::optional<Live>& continuation);
    Live live_at(std::uint64_t pc, unsigned branches);
    void analyse(UnitPlan& plan);
    void analyse_block(UnitPlan& plan, std::size_t index);
    bool wants_one_place(const UnitPlan& plan, std::size_t index) const;
    bool analyse_backwards(UnitPlan& plan, const PlannedBlock& block, Live live) const;
    static void find_short_loops(UnitPlan& plan);
    void analyse_ends(PlannedBlock& block, const Instruction& last,
                      const std::optional<Live>& continuation, const Live& live);

    Decoder& decoder_;
    const MemoryMap& memory_;
    CodeWatch& watch_;
    CodeCache& cache_;
    const Regions& regions_;
    const AllocationFunctions& allocation_functions_;
    const TraceTables& trace_;
    PcMap<bool> reads_flags_;
    PcMap<Live> live_;
    bool flags_cross_calls_ = false;
    bool watches_ = true;
};

}  // namespace assay::native
