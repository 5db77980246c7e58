// Instrumentation of control flow: records of where branches go, the predictor that runs in the
// target (predictor.h), and calls and whatever else gives the stack pointer a new value.
//
// A conditional branch is looked at behind itself, on both of its ways: there its outcome is known,
// what is done about it does not wait for it, and the flags are mostly dead. Nothing in it is a
// branch. The prediction counts the block, too: in one of two counters, by whether the prediction
// was right.
//
// All records are made of moves and lea: no flag changes.
#pragma once

#include "framework/driver/native/translate/unit_writer.h"

namespace assay::native {

class Branches : public UnitPart {
  public:
    using UnitPart::UnitPart;

    // Those of `which`, of TRACE_CONDITIONAL_BRANCHES and its like.
    bool captures(unsigned which) const;
    void record(std::uint32_t site, std::uint64_t target, bool taken, Live live);
    void record_target(unsigned position, unsigned which);
};

class Predictions : public UnitPart {
  public:
    using UnitPart::UnitPart;

    bool wanted() const;
    void conditional(const Instruction& branch, bool taken, Live live);
    void indirect(const Instruction& branch, unsigned position);
};

class Calls : public UnitPart {
  public:
    using UnitPart::UnitPart;

    void record_stack_pointer(unsigned position, unsigned kind);
    void record_flow(unsigned position, unsigned kind, unsigned value);
};

}  // namespace assay::native
