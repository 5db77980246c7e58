// Where collecting begins and ends: what counts instructions down to a boundary of a region
// (Regions), of an interval (Intervals) or of a burst (Bursts), and leaves there.
#pragma once

#include "framework/driver/native/translate/unit_plan.h"
#include "framework/driver/native/translate/unit_writer.h"

namespace assay::native {

class Boundaries : public UnitPart {
  public:
    using UnitPart::UnitPart;

    // Before a block, where all of the target's state is in its place.
    void gate(const PlannedBlock& block);
    // --- Intervals.
    unsigned instructions_from(const PlannedBlock& block) const;
    std::uint64_t interval_arrival(const PlannedBlock& block, std::uint64_t body);
    // --- Where the unit is left. At a return or an indirect jump its target is in rcx, and rax is
    // free.
    void check_left(unsigned position);
    void count_leaving(unsigned position);
    void counted_jump(const PlannedBlock& block, std::uint64_t target, bool flags_live);

  private:
    std::uint64_t leave_at_entry(const PlannedBlock& block, ExitKind kind, bool flags_saved);
    void count_interval_down(Assembler& code, unsigned instructions, std::uint64_t leave);
    unsigned position_of(std::uint64_t pc) const;
};

// Where the items of a unit go.

// For one block after another, captures place items for one instruction after another. Items stay
// in the order in which they are placed.
class Placer {
  public:
    explicit Placer(UnitPlan& plan);

    void begin(PlannedBlock& block);
    void end(PlannedBlock& block) const;
    // Which one places.
    void set_capture(std::uint8_t number) { capture_ = number; }

    // At the latest point where the flags are dead, not before the items that are there already,
    // nor before an instruction that changes a register of `address`; if there is none, right
    // before its instruction.
    void place(Item item, GprMask address = 0);
    // Right before the instruction, or right behind it.
    void place_before(unsigned instr);
    void place_behind(unsigned instr);
    // At the first point of the block where the flags are dead, wherever other items are; if there
    // is none, at its beginning. When all of the others are there.
    void place_anywhere(const PlannedBlock& block);
    // At the block's beginning, when all of the others are there.
    void place_at_entry(const PlannedBlock& block);
    // What is placed from now on must not go before the instruction.
    void stay_behind(unsigned instr) { earliest_ = instr + 1; }

    // The plan of the items, to which references can be added.
    UnitPlan& plan() { return plan_; }

  private:
    void add(Item item);

    UnitPlan& plan_;
    std::uint8_t capture_ = 0;
    unsigned earliest_ = 0;  // where the next item may go
};

}  // namespace assay::native
