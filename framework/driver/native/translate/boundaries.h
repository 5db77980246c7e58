// Begins and ends collecting. Counts instructions down to a boundary of a region (Regions), of an
// interval (Intervals) or of a burst (Bursts), and leaves to the driver there.
#pragma once

#include "framework/driver/native/translate/unit_plan.h"
#include "framework/driver/native/translate/unit_writer.h"

namespace assay::native {

class Boundaries : public UnitPart {
  public:
    using UnitPart::UnitPart;

    // Comes before a block, where all of the program's state is in its place.
    void gate(const PlannedBlock& block);
    // --- Intervals.
    unsigned instructions_from(const PlannedBlock& block) const;
    std::uint64_t interval_arrival(const PlannedBlock& block, std::uint64_t body);
    // --- Where the unit is left. At a return or an indirect jump, rcx has the target, and rax is
    // free.
    void check_left(unsigned position);
    void count_leaving(unsigned position);
    void counted_jump(const PlannedBlock& block, std::uint64_t target, bool flags_live);

  private:
    std::uint64_t leave_at_entry(const PlannedBlock& block, ExitKind kind, bool flags_saved);
    void count_interval_down(Assembler& code, unsigned instructions, std::uint64_t leave);
    unsigned position_of(std::uint64_t pc) const;
};

// Decides where the items of a unit go.

// Captures place items for one instruction after another, block by block. Items keep the order in
// which they are placed.
class Placer {
  public:
    explicit Placer(UnitPlan& plan);

    void begin(PlannedBlock& block);
    void end(PlannedBlock& block) const;
    // The capture that places the next items.
    void set_capture(std::uint8_t number) { capture_ = number; }

    // Places the item at the latest point where the flags are dead, or right before its instruction
    // if there is no such point. The item goes after all present items, and after instructions that
    // change a register of `address`.
    void place(Item item, GprMask address = 0);
    // Right before the instruction, or right after it.
    void place_before(unsigned instr);
    void place_behind(unsigned instr);
    // At the first point of the block where the flags are dead, or at its beginning if there is no
    // such point. Call this when all other items are placed, because it ignores their order.
    void place_anywhere(const PlannedBlock& block);
    // At the block's beginning. Call this when all other items are placed.
    void place_at_entry(const PlannedBlock& block);
    // Later items must not go before the instruction.
    void stay_behind(unsigned instr) { earliest_ = instr + 1; }

    // The plan of the items. Captures may add references to it.
    UnitPlan& plan() { return plan_; }

  private:
    void add(Item item);

    UnitPlan& plan_;
    std::uint8_t capture_ = 0;
    unsigned earliest_ = 0;  // the first possible place of the next item
};

}  // namespace assay::native
