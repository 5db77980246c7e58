// Where collecting begins and ends: what counts instructions down to a boundary of a region
// (Regions), of an interval (Intervals) or of a burst (Bursts), and leaves there.
#pragma once

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

}  // namespace assay::native
