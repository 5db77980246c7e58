#include "framework/driver/native/process/stepper.h"

#include "framework/driver/native/process/code_faults.h"
#include "framework/driver/shared/in_translated_code.h"

#include <atomic>
#include <cstring>
#include <mutex>

namespace assay::native {
namespace {

// Also true for functions that translated code calls.
bool leads_to_translated_code(std::uint64_t pc) {
    return is_between(pc, reinterpret_cast<const void*>(&assay_enter), assay_enter_end) ||
           is_between(pc, __start_assay_in_translated_code, __stop_assay_in_translated_code);
}

}  // namespace

void Stepper::entering() {
    entering_ = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

void Stepper::step_from_entry(Context& context) {
    context.rflags |= kTrapFlag;
    stepping_ = true;
}

void Stepper::left(Context& context) {
    entering_ = false;
    stepping_ = false;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    context.rflags &= ~kTrapFlag;
}

bool Stepper::come_back(Context& context, ucontext_t* interrupted) {
    const std::uint64_t host_pc = pc_of(interrupted);
    // A string instruction or subroutine that runs to a breakpoint is already on its way.
    if (after_aside_ != 0) return true;
    if (cache_.contains(host_pc)) {
        if (!leave_at_entry(context, interrupted)) step_from(interrupted);
        return true;
    }
    if (!entering_) return false;
    step_from_entry(context);
    if (leads_to_translated_code(host_pc)) set_trap_flag(interrupted, true);
    return true;
}

void Stepper::interrupt(Context& context, ucontext_t* interrupted) {
    if (stepping_ || !cache_.contains(pc_of(interrupted))) return;
    if (!leave_at_entry(context, interrupted)) step_from(interrupted);
}

// The kernel may report a single step as TRAP_BRKPT. The program's breakpoint has SI_KERNEL.
bool Stepper::is_step(const siginfo_t& info) const {
    return stepping_ &&
           (info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT || after_aside_ != 0);
}

void Stepper::on_step(Context& context, ucontext_t* interrupted) {
    // pushf pushed the program's flags together with the driver's trap flag.
    if (pushes_flags_)
        *reinterpret_cast<std::uint16_t*>(interrupted->uc_mcontext.gregs[REG_RSP]) &=
            static_cast<std::uint16_t>(~kTrapFlag);
    pushes_flags_ = false;
    if (after_aside_ != 0) set_pc(interrupted, after_aside_);
    after_aside_ = 0;
    const std::uint64_t host_pc = pc_of(interrupted);
    if (cache_.contains(host_pc)) {
        if (!leave_at_entry(context, interrupted)) step_from(interrupted);
        return;
    }
    // popf may have cleared the flag that the handler had set.
    const bool enters = leads_to_translated_code(host_pc);
    set_trap_flag(interrupted, enters);
    stepping_ = enters;
}

std::uint64_t Stepper::end_at_fault(std::uint64_t host_pc) {
    const std::uint64_t behind = after_aside_;
    after_aside_ = 0;
    return behind != 0 && host_pc == step_buffer() ? behind - 1 : host_pc;
}

void Stepper::step_from(ucontext_t* interrupted) {
    stepping_ = true;
    set_trap_flag(interrupted, true);
    const auto* code = reinterpret_cast<const std::uint8_t*>(pc_of(interrupted));
    while (*code == 0x66 || (*code & 0xf0) == 0x40) ++code;
    pushes_flags_ = *code == 0x9c;
    if (*code == 0xf2 || *code == 0xf3) step_over_string(interrupted);
    if (*code == 0xe8) step_over_call(interrupted);
}

// A subroutine of the code cache uses its own stack (UnitWriter::call_stub). Single steps through
// many calls in a block would be slower than the program's timers. The subroutine therefore runs as
// a whole, and returns to a breakpoint.
void Stepper::step_over_call(ucontext_t* interrupted) {
    constexpr std::uint64_t kLength = 5;
    const std::uint64_t host_pc = pc_of(interrupted);
    std::int32_t distance = 0;
    std::memcpy(&distance, reinterpret_cast<const void*>(host_pc + 1), sizeof distance);
    const std::uint64_t aside = step_buffer();
    *reinterpret_cast<std::uint8_t*>(aside) = 0xcc;
    auto& sp = interrupted->uc_mcontext.gregs[REG_RSP];
    sp -= static_cast<greg_t>(sizeof aside);
    std::memcpy(reinterpret_cast<void*>(sp), &aside, sizeof aside);
    after_aside_ = host_pc + kLength;
    set_pc(interrupted, after_aside_ + static_cast<std::uint64_t>(std::int64_t{distance}));
    set_trap_flag(interrupted, false);
}

// The processor reports a repeated instruction after each iteration, perhaps millions of times (SDM
// volume 3, 17.3.1.4). A copy runs in the step buffer instead, followed by a breakpoint.
void Stepper::step_over_string(ucontext_t* interrupted) {
    const std::uint64_t host_pc = pc_of(interrupted);
    const auto* code = reinterpret_cast<const std::uint8_t*>(host_pc);
    unsigned length = 0;
    while (code[length] == 0x66 || code[length] == 0x67 || code[length] == 0xf2 ||
           code[length] == 0xf3 || (code[length] & 0xf8) == 0x48 || (code[length] & 0xf0) == 0x40)
        ++length;
    const unsigned opcode = code[length++];
    const bool string = (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);
    if (!string) return;
    auto* aside = reinterpret_cast<std::uint8_t*>(step_buffer());
    std::memcpy(aside, code, length);
    aside[length] = 0xcc;
    after_aside_ = host_pc + length;
    set_pc(interrupted, step_buffer());
    set_trap_flag(interrupted, false);
}

// Leaves translated code if a basic block starts here.
bool Stepper::leave_at_entry(Context& context, ucontext_t* interrupted) {
    const std::lock_guard guard(lock_);
    const Block* block = cache_.entered_at(pc_of(interrupted));
    if (block == nullptr) return false;
    context.pc = block->pc;
    context.countdown -= block->position();
    context.exit_id = kInterrupted;
    set_pc(interrupted, context.exit_glue);
    set_trap_flag(interrupted, false);
    stepping_ = false;
    return true;
}

}  // namespace assay::native
