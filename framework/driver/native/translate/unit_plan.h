// The plan of a unit that the translator will emit: its instructions, the live registers and flags
// at each, and the places of instrumentation. The planner makes everything except the items, which
// captures place (Captures::place_items).
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/code_cache/code_watch.h"
#include "framework/driver/native/memory/memory_map.h"
#include "framework/driver/native/trace/allocation_functions.h"
#include "framework/driver/native/trace/regions.h"
#include "framework/driver/native/trace/thread_trace.h"
#include "framework/driver/shared/interpreter.h"
#include "framework/x86/decoder.h"

#include <optional>
#include <vector>

namespace assay::native {

// A data reference of a unit. The addresses of a group's references differ by constants. It can
// also be a fetch of consecutive instructions up to the first one with data references.
struct PlannedReference {
    // A value of `number`: this is a fetch, and no reference of the form.
    static constexpr std::uint8_t kCode = 2;

    std::uint16_t instr = 0;  // index in the unit
    std::uint8_t number = 0;  // the number of the reference in the form
    std::int64_t offset = 0;  // of the address, relative to the group's registers at its position
    std::uint32_t bytes = 0;  // at most a line
};

// A piece of instrumentation.
struct Item {
    std::uint8_t capture = 0;  // of the item: Captures::kNumber
    bool flags_live = false;   // at `position`
    std::uint16_t instr = 0;   // the instruction of the item, as an index in the unit
    // The item is emitted before the instruction with this index, or at the block's end.
    std::uint16_t position = 0;

    // --- For MemoryReferences: a group of consecutive references. If all lie in one line, only the
    // first
    //         one can find that another line is the most recent one of its set.
    std::uint16_t reference_count = 0;
    // Not 0: the first references of the group that are a series. Each has 8 bytes, next to those
    // of the one before, as when registers are saved and restored.
    std::uint16_t series_count = 0;
    std::uint32_t first_reference = 0;  // in UnitPlan::references; for ObjectReferences, the group
    std::int64_t low = 0, high = 0;  // the bytes of the group, by offsets like those of references

    bool is_behind() const { return position > instr; }  // true if it comes after its instruction
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
    // With Bursts. goes_on_taken: the unit continues with the target of the block's branch, a copy
    // of a block that it already has. copy: this block is such a copy.
    bool goes_on_taken = false;
    bool copy = false;
    bool in_short_loop = false;  // of the unit: its counter is incremented again soon
    // See Regions.
    bool enters_function = false;
    bool allocates = false;           // is a function of AllocationFunctions
    bool ends_with_position = false;  // its last instruction stores a position: Interpreter
    bool counted_down = false;
    bool counted_in_slice = false;
    bool counted_in_interval = false;  // in its interval, on each way that leads to it
    std::uint16_t counted_beyond = 0;  // then: instructions of other units that are counted here

    // The live values at the end of the block, if needed (Capture::kNeedsLiveOnWays): at the target
    // of its conditional branch, and on the other way.
    Live live_if_taken, live_otherwise;

    // True if each way to the block must arrive at its very beginning.
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
    bool landing = false;  // indirect branches arrive at the first block, which checks their target
    std::vector<Instruction> instructions;
    std::vector<PlannedBlock> blocks;
    std::vector<Item> items;
    std::vector<PlannedReference> references;
    bool leaves_functions = false;  // checks if returns and jumps do: Regions, Allocations
    bool counts_at_exits = false;   // counts instructions where the unit is left: Bursts
    // Before each instruction.
    std::vector<std::uint16_t> flags_live;
    std::vector<GprMask> gprs_live;

    void clear();
    const MemoryReference& form_of(const PlannedReference& reference) const {
        return reference.number == PlannedReference::kCode
                   ? kCodeForm
                   : instructions[reference.instr].form->references[reference.number];
    }
    bool collects() const { return native::collects(version); }

  private:
    static constexpr MemoryReference kCodeForm{};  // an address that is known now
};

class Planner {
  public:
    Planner(Decoder& decoder, const MemoryMap& memory, CodeWatch& watch, CodeCache& cache,
            const Regions& regions, const AllocationFunctions& allocation_functions,
            const driver::Interpreter& interpreter, const TraceTables& trace)
        : decoder_(decoder),
          memory_(memory),
          watch_(watch),
          cache_(cache),
          regions_(regions),
          allocation_functions_(allocation_functions),
          interpreter_(interpreter),
          trace_(trace) {}

    // Plans a new unit that begins at `pc`. False if there is no valid instruction. `landing`: see
    // UnitPlan.
    bool plan(std::uint64_t pc, Version version, bool landing, UnitPlan& out);
    // Plans the one instruction at `pc`. Its memory is not watched.
    bool plan_alone(std::uint64_t pc, Version version, UnitPlan& out);
    // Plans an existing unit again, with the same blocks.
    void replan(const Unit& unit, UnitPlan& out);

    // True if the code at `pc` may read an arithmetic flag before it writes the flag. Looks at up
    // to `limit` instructions, and at fewer after branches.
    bool reads_flags(std::uint64_t pc, unsigned limit);
    // By the psABI, flags carry nothing across calls and returns. Instrumentation relies on this
    // until the program is about to run a popf, or a call whose continuation reads a flag. It then
    // keeps the flags across all calls. Such an instruction is the first of its block, and
    // must_keep_flags() detects it before the block is translated.
    bool must_keep_flags(std::uint64_t pc);
    // If nothing is captured, no instrumentation changes the flags.
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
    bool stores_position(const Instruction& instruction) const;
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
    const driver::Interpreter& interpreter_;
    const TraceTables& trace_;
    PcMap<bool> reads_flags_;
    PcMap<Live> live_;
    bool flags_cross_calls_ = false;
    bool watches_ = true;
};

}  // namespace assay::native
