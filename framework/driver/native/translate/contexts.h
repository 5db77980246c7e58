// Instrumentation of calling contexts: which node of the CallTree is the present one. Blocks are
// counted in its words where they are counted anyway (BlockIncrements, Predictions).
//
//   a call             puts the present node on the stack of frames. The callee's is in the word of
//                      that call; an indirect call's is the right one if its entry is the target
//   a return           finds the caller's node in the innermost frame, whose address must be the
//                      stack pointer, and the node's range the one that it returns to
//   a way to a block   that begins in another range of code: the node is in the word of that way
//   the stack pointer  gets a value from elsewhere: it must be on the same stack still, and in the
//                      same frame
//
// Whatever is otherwise goes through a subroutine (emit/record_stubs.h).
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
    std::uint64_t range() const;  // that of the present block
    std::uint32_t word_of_way(std::uint64_t pc, std::uint64_t target);
    // In cold code.
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
};

}  // namespace assay::native
