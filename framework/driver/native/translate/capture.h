// What a capture has to say when a unit is translated. Each is a class derived from Capture, in
// files of its own, and named in the list of captures.h; nothing else names it.
//
//   of any unit          whether the specification wants it, and what it does to blocks and to
//                        registers: the planner asks for that before it knows what is live
//   place()              of each instruction in turn: the items that it wants before and behind it
//   at_entry(), emit(), before(), behind(), before_branch(), leave(), leave_indirectly()
//                        what it writes at these points, when the unit is emitted
//
// Captures come in the order of the list; behind an instruction, and where a block is left, in the
// opposite one.
//
// An object is there for one unit, and only if that collects and the specification wants it.
// Classes are final, so that these calls are no virtual ones: see captures.h.
#pragma once

#include "framework/driver/native/translate/boundaries.h"
#include "framework/driver/native/translate/unit_writer.h"
#include "framework/driver/native/translate/values.h"

namespace assay::native {

// A way out of a block whose target is known: on to other code of the program or, where that is 0,
// to the driver. Also that of a block which no branch ends.
struct Way {
    const Instruction& last;  // of the block
    unsigned position;        // of that
    std::uint64_t target;
    bool taken;  // false: control goes on right behind
    Live live;
};

class Capture : public UnitPart {
  public:
    using UnitPart::UnitPart;
    virtual ~Capture() = default;

    // --- Of any unit. Each capture has
    //
    //         static bool wanted(const trace::Spec& spec);
    //
    //     and any of these, where it is not what they say here.

    // A block ends behind the instruction, which is no branch.
    static bool ends_block(const Instruction& /*instruction*/) { return false; }
    // Of which registers it needs the program's values, before such an instruction and behind it.
    // The instruction's own, and rsp, are never lost.
    static ValueRegisters reads(const TraceTables& /*tables*/, const Form& /*form*/) { return {}; }
    // On the ways out of a block it borrows registers or changes flags.
    static constexpr bool kNeedsLiveOnWays = false;
    // It wants one place in a block where the flags are dead, and no more.
    static constexpr bool kOnePlaceWillDo = false;

    // --- What it wants to be emitted where flags and registers are dead, for the instruction.
    //     emit() gets these items.

    virtual void place(Placer& /*placer*/, const PlannedBlock& /*block*/, unsigned /*instr*/) {}
    virtual void emit(const Item& /*item*/) {}

    // --- In hot code, or in cold code that leads there.

    // Where a block is entered.
    virtual void at_entry(const PlannedBlock& /*block*/, Block& /*record*/) {}
    // Right before an instruction that is no branch, and right behind it.
    virtual void before(const Instruction& /*instruction*/, unsigned /*position*/) {}
    virtual void behind(const Instruction& /*instruction*/, unsigned /*position*/) {}
    // Before a branch, or what leaves to the driver. No register is borrowed.
    virtual void before_branch(const Instruction& /*branch*/, unsigned /*position*/) {}
    // True if leave() is wanted on both ways of the conditional branch. Else it gets none of them.
    virtual bool follows(const Instruction& /*branch*/, unsigned /*position*/) { return false; }
    // On a way out of the present block, behind its last instruction.
    virtual void leave(const Way& /*way*/) {}
    // Within an indirect branch or return, whose target is in rcx. What the program has in rax and
    // rcx waits in the context, so that rax is free.
    virtual void leave_indirectly(const Instruction& /*branch*/, unsigned /*position*/) {}
};

}  // namespace assay::native
