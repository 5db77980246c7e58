// The program's own instructions. An instruction is rewritten if an exact copy would have another
// meaning at its new place.
//
// The driver uses fs and gs while translated code runs. The context has the program's bases of
// both. A copy of an operand in fs or gs therefore has no segment, and a register has the base.
#pragma once

#include "framework/driver/native/translate/unit_writer.h"

namespace assay::native {

class Copies : public UnitPart {
  public:
    using UnitPart::UnitPart;

    // An instruction that is no branch.
    void instruction(const Instruction& instruction, unsigned position);
    // Loads the target of an indirect branch into rcx.
    void load_branch_target(const Instruction& last, unsigned position);

  private:
    void copy(const Instruction& instruction, unsigned position);
    // Copies the bytes before ModRM. Without `extensions` the operand can be [low register].
    void copy_head(const Instruction& instruction, bool keeps_segment, unsigned extensions = 0);
    void copy_rest(const Instruction& instruction, unsigned from);
    void copy_absolute(const Instruction& instruction);
    void copy_based(const Instruction& instruction, unsigned position);
    void copy_undefined(unsigned position);
    void copy_state_access(const Instruction& instruction, unsigned position);
    // --- In fs and gs.
    void copy_in_segment(const Instruction& instruction, unsigned position);
    unsigned acquire_for_address(const Form& form, unsigned position, GprMask others);
    void copy_with_base(const Instruction& instruction, unsigned position);
    void copy_by_address(const Instruction& instruction, unsigned position);
    unsigned load_operand_address(const Instruction& instruction, unsigned position);
    void copy_at(const Instruction& instruction, unsigned address);
    void copy_xlat(const Instruction& instruction, unsigned position);
    void copy_accumulator_move(const Instruction& instruction, unsigned position);
    void copy_displaced(const Instruction& instruction, unsigned position);
    void copy_base_access(const Instruction& instruction);
    void load_branch_target_in_segment(const Instruction& last, unsigned position);
};

}  // namespace assay::native
