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

#include "framework/driver/native/translate/capture.h"

namespace assay::native {

class Branches final : public Capture {
  public:
    explicit Branches(UnitWriter& writer) : Capture(writer), sites_(plan_.blocks.size()) {}

    static bool wanted(const trace::Spec& spec) { return spec.captures & trace::kCaptureBranches; }
    static constexpr bool kNeedsLiveOnWays = true;

    void before_branch(const Instruction& branch, unsigned position) override;
    bool follows(const Instruction& branch, unsigned position) override;
    void leave(const Way& way) override;
    void leave_indirectly(const Instruction& branch, unsigned position) override;

  private:
    bool captures(unsigned which) const { return spec_.branches & which; }
    void record(std::uint32_t site, const Way& way);

    std::vector<std::uint32_t> sites_;  // of the blocks' conditional branches
};

class Predictions final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) {
        return spec.captures & trace::kCapturePredictions;
    }
    static bool ends_block(const Instruction& instruction) { return is_predicted(instruction); }
    static constexpr bool kNeedsLiveOnWays = true;

    bool follows(const Instruction& /*branch*/, unsigned /*position*/) override { return true; }
    void leave(const Way& way) override;
    void leave_indirectly(const Instruction& branch, unsigned position) override;

  private:
    void predict(const Instruction& branch, bool taken, Live live);
};

class Calls final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) { return spec.captures & trace::kCaptureCalls; }
    // True if rsp may be on another stack or in another frame behind the instruction.
    static bool leaves_stack(const UnitPlan& plan, const PlannedBlock& block, unsigned instr);

    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override;
    void leave_indirectly(const Instruction& branch, unsigned position) override;
};

}  // namespace assay::native
