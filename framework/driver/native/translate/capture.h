// The interface of a capture: the planner and the emitter call these functions for each unit. Each
// capture is a class derived from Capture, in its own files. Only the list in captures.h names it.
//
//   static members      whether the specification wants it, and its effect on blocks and registers.
//                       The planner needs these before it knows what is live
//   place()             for each instruction: the items before and after it
//   at_entry(), emit(), before(), behind(), before_branch(), leave(), leave_indirectly()
//                       emit code at these points of the unit
//
// Captures are called in the order of the list. After an instruction, and on a way out of a block,
// the order is reversed.
//
// An object lives for one unit. It exists only if the unit collects and the specification wants it.
// Classes are final, so that these calls are not virtual: see captures.h.
#pragma once

#include "framework/driver/native/translate/boundaries.h"
#include "framework/driver/native/translate/unit_writer.h"
#include "framework/driver/native/translate/values.h"

namespace assay::native {

// A way out of a block whose target is known: to other code of the program, or to the driver if
// `target` is 0. A block without a branch at its end also has one.
struct Way {
    const Instruction& last;  // of the block
    unsigned position;        // of this instruction
    std::uint64_t target;
    bool taken;  // false: control continues right after the block
    Live live;
};

class Capture : public UnitPart {
  public:
    using UnitPart::UnitPart;
    virtual ~Capture() = default;

    // --- For any unit. Each capture has
    //
    //             static bool wanted(const trace::Spec& spec);
    //
    //         and redefines those of the following that differ.

    // True if a block must end after the instruction, which is no branch.
    static bool ends_block(const Instruction& /*instruction*/) { return false; }
    // The registers whose program values the capture needs before and after such an instruction.
    // The values of rsp and of the registers that the instruction uses are always there.
    static ValueRegisters reads(const TraceTables& /*tables*/, const Form& /*form*/) { return {}; }
    // True if it borrows registers or changes flags on the ways out of a block.
    static constexpr bool kNeedsLiveOnWays = false;
    // True if it needs only one place in a block where the flags are dead.
    static constexpr bool kOnePlaceWillDo = false;

    // --- Items: code at places where flags and registers are dead. place() requests items for the
    //         instruction, and emit() gets them.

    virtual void place(Placer& /*placer*/, const PlannedBlock& /*block*/, unsigned /*instr*/) {}
    virtual void emit(const Item& /*item*/) {}

    // --- In hot code, or in cold code that leads there.

    // At the entry of a block.
    virtual void at_entry(const PlannedBlock& /*block*/, Block& /*record*/) {}
    // Right before an instruction that is no branch, and right after it.
    virtual void before(const Instruction& /*instruction*/, unsigned /*position*/) {}
    virtual void behind(const Instruction& /*instruction*/, unsigned /*position*/) {}
    // Before a branch, or before an instruction that leaves to the driver. No register is borrowed.
    virtual void before_branch(const Instruction& /*branch*/, unsigned /*position*/) {}
    // True if leave() is wanted on both ways of the conditional branch, false if on no way.
    virtual bool follows(const Instruction& /*branch*/, unsigned /*position*/) { return false; }
    // On a way out of the present block, after its last instruction.
    virtual void leave(const Way& /*way*/) {}
    // Within an indirect branch or return. rcx has the target. The program's rax and rcx wait in
    // the context, so rax is free.
    virtual void leave_indirectly(const Instruction& /*branch*/, unsigned /*position*/) {}
};

}  // namespace assay::native
