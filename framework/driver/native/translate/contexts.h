// Instrumentation of calling contexts: it keeps the present node of the CallTree. BlockIncrements
// and Predictions count blocks in the words of this node.
//
//   a call             pushes the present node on the stack of frames. The word of the call has the
//                      callee's node. For an indirect call, the node's entry must be the target,
//                      and the node counts the call. A direct call is executed as often as its
//                      block
//   a return           finds the caller's node in the innermost frame. The frame's address must be
//                      the stack pointer, and the return address must lie in the node's range
//   a way to a block   in another range of code: the word of this way has the node
//   a position         is stored by an interpreter (Interpreter): CallState::steps has the node of
//                      this line
//   the stack pointer  is loaded from elsewhere: it must still be on the same stack and in the same
//                      frame
//
// In all other cases, a subroutine does the work (emit/record_stubs.h).
#pragma once

#include "framework/driver/native/translate/capture.h"

namespace assay::native {

class Contexts final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) { return spec.captures & trace::kCaptureContexts; }
    static constexpr bool kNeedsLiveOnWays = true;

    void at_entry(const PlannedBlock& block, Block& record) override;
    void behind(const Instruction& instruction, unsigned position) override;
    bool follows(const Instruction& branch, unsigned position) override;
    void leave(const Way& way) override;
    void leave_indirectly(const Instruction& branch, unsigned position) override;

  private:
    std::uint64_t range() const;  // the range of the present block
    std::uint32_t word_of_way(std::uint64_t pc, std::uint64_t target);
    // --- In cold code.
    std::uint64_t emit_site(const CallSite& site);
    void call_subroutine(CallTreeStub stub, std::uint64_t argument, unsigned target);

    std::uint64_t write_frame(unsigned top, unsigned node);
    std::uint64_t load_next(unsigned node, std::uint32_t word);
    void enter_callee(unsigned top, unsigned node);
    void call(const Way& way);
    void jump(const Way& way);
    void call_indirectly(const Instruction& branch);
    void jump_indirectly(const Instruction& branch);
    void come_back();
    void go_to_line(unsigned position_register);
};

}  // namespace assay::native
