#include "framework/driver/native/run/interrupt_return.h"

#include "framework/driver/native/machine/target_memory.h"

namespace assay::native {
namespace {

// SDM volume 2, IRET, in 64-bit mode.
struct InterruptFrame {
    std::uint64_t rip, cs, rflags, rsp, ss;
};

// arch/x86/include/asm/segment.h: __USER_CS and __USER_DS.
constexpr std::uint64_t kUserCode = 0x33, kUserData = 0x2b, kSelector = 0xffff;

// ID, AC, and from OF down to CF all but the interrupt flag.
constexpr std::uint64_t kChangeable = 0x240dd5;

}  // namespace

bool return_from_interrupt(Context& context) {
    InterruptFrame frame;
    if (!read_target(context.gpr[RSP], &frame, sizeof frame)) return false;
    if ((frame.cs & kSelector) != kUserCode || (frame.ss & kSelector) != kUserData) return false;
    context.pc = frame.rip;
    context.gpr[RSP] = frame.rsp;
    context.rflags = (context.rflags & ~kChangeable) | (frame.rflags & kChangeable);
    return true;
}

}  // namespace assay::native
