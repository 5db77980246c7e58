// Emits a planned unit: the program's instructions, the code of the captures (capture.h), and the
// countdowns to the next boundary:
//
//   at a block's entry        Boundaries::gate, Capture::at_entry, Boundaries::interval_arrival
//   before an instruction     Capture::emit of items there, Capture::before
//   after it                  Capture::behind, Capture::emit of items there
//   where the unit is left    Capture::before_branch, the branch, Capture::leave, Boundaries
#pragma once

#include "framework/driver/native/translate/boundaries.h"
#include "framework/driver/native/translate/captures.h"
#include "framework/driver/native/translate/copies.h"

namespace assay::native {

class Emitter : public UnitPart {
  public:
    // `captures`: the same that have placed the plan's items.
    Emitter(UnitWriter& writer, Captures& captures)
        : UnitPart(writer), copies_(writer), boundaries_(writer), captures_(captures) {}

    void emit();

  private:
    // The taken way of a conditional branch. Its code comes after the unit's last block.
    struct TakenWay {
        unsigned block = 0;
        std::uint64_t jump = 0;  // address of the branch's displacement
    };

    void emit_block(unsigned index);
    void emit_landing(const PlannedBlock& block, Block& record);
    void emit_entry(const PlannedBlock& block, Block& record);
    void emit_check(const PlannedBlock& block);
    void emit_items(const PlannedBlock& block, unsigned position);
    void emit_instruction(const Instruction& instruction, unsigned position);
    // --- Ends of blocks (control_flow.cpp).
    void emit_flow(const PlannedBlock& block, const Instruction& last);
    void emit_continuation(const PlannedBlock& block, std::uint64_t target);
    std::uint64_t emit_branch(const Instruction& last);
    void emit_push_return(std::uint64_t return_pc);
    void emit_indirect(const Instruction& last, unsigned position);
    void emit_return(const Instruction& last, unsigned position);
    void emit_conditional(const PlannedBlock& block, const Instruction& last, unsigned position);
    void emit_counted_branch(const PlannedBlock& block, const Instruction& last);
    void emit_taken_ways();
    void emit_way(const PlannedBlock& block, bool taken);
    void leave_to_driver(ExitKind kind, const Instruction& last, unsigned position);

    Copies copies_;
    Boundaries boundaries_;
    Captures& captures_;
    unsigned next_item_ = 0;
    std::vector<TakenWay> taken_ways_;
};

}  // namespace assay::native
