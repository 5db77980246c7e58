// Instrumentation of control flow: records of branches, the predictor that runs in the program
// (predictor.h), records of calls, and of other new values of the stack pointer.
//
// The code for a conditional branch comes after the branch, on both of its ways. There the outcome
// is known, the branch does not wait for this code, and the flags are mostly dead. The code itself
// has no branch. The prediction also counts the block, in a counter for right or for wrong
// predictions.
//
// Records use only moves and lea, so no flag changes.
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

    std::vector<std::uint32_t> sites_;  // by block: the site of its conditional branch
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
    // True if rsp may be on another stack or in another frame after the instruction.
    static bool leaves_stack(const UnitPlan& plan, const PlannedBlock& block, unsigned instr);

    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override;
    void leave_indirectly(const Instruction& branch, unsigned position) override;
};

}  // namespace assay::native
