// What the translator is about to emit: the instructions of a unit, which registers and flags
// are live where, and at which points instrumentation goes.
#pragma once

#include "framework/driver/native/code_cache.h"
#include "framework/driver/native/decoder.h"
#include "framework/driver/native/memory_map.h"
#include "framework/driver/native/trace_writer.h"

#include <unordered_map>
#include <vector>

namespace assay::native {

enum class ItemKind : std::uint8_t { kCount, kFetch, kData, kSpecial };

// A piece of instrumentation.
struct Item {
    ItemKind kind = ItemKind::kCount;
    std::uint8_t reference = 0;  // kData: which of the form's references
    bool flags_live = false;     // at `position`
    std::uint16_t instr = 0;     // the instruction that it is about, index in the unit
    std::uint16_t position = 0;  // emitted before this instruction of the unit
};

struct PlannedBlock {
    std::uint64_t pc = 0, end_pc = 0;
    std::uint16_t first = 0, count = 0;  // in UnitPlan::instructions
    std::uint32_t first_item = 0, item_count = 0;
    bool chained = false;
    bool previous_fetched = false;
};

struct UnitPlan {
    std::vector<Instruction> instructions;
    std::vector<PlannedBlock> blocks;
    std::vector<Item> items;
    // Before each instruction.
    std::vector<std::uint16_t> flags_live;
    std::vector<GprMask> gprs_live;

    void clear();
};

class Planner {
  public:
    Planner(Decoder& decoder, const MemoryMap& memory, CodeCache& cache, const TraceWriter& trace)
        : decoder_(decoder), memory_(memory), cache_(cache), trace_(trace) {}

    // Plans a new unit that begins at `pc`. False if there is no instruction.
    bool plan(std::uint64_t pc, UnitPlan& out);
    // Plans an existing unit again, with the same blocks.
    void replan(const Unit& unit, UnitPlan& out);

    // True if the code at `pc` reads an arithmetic flag before writing it, or if that cannot be
    // told.
    bool reads_flags(std::uint64_t pc, unsigned limit);
    // By the psABI flags carry nothing from callers to functions or back, and instrumentation
    // relies on that until a call is seen whose continuation reads a flag; then for good.
    bool flags_cross_calls() const { return flags_cross_calls_; }
    void set_flags_cross_calls() { flags_cross_calls_ = true; }
    void forget_code() { reads_flags_.clear(); }

  private:
    bool decode_block(std::uint64_t pc, UnitPlan& out, unsigned limit);
    std::uint64_t continuation(const UnitPlan& plan, const PlannedBlock& block) const;
    std::uint16_t flags_after(const Instruction& last);
    void analyse(UnitPlan& plan);
    void analyse_block(UnitPlan& plan, PlannedBlock& block, std::uint16_t flags_out);
    void place_items(UnitPlan& plan, PlannedBlock& block);
    void place(UnitPlan& plan, Item item, unsigned earliest, GprMask address);
    bool crosses_line(const UnitPlan& plan, const PlannedBlock& block, unsigned instr) const;

    Decoder& decoder_;
    const MemoryMap& memory_;
    CodeCache& cache_;
    const TraceWriter& trace_;
    std::unordered_map<std::uint64_t, bool> reads_flags_;
    bool flags_cross_calls_ = false;
};

}  // namespace assay::native
