// How a block ends: the control flow of its last instruction.
//
// An indirect branch arrives at the landings of its target's index (CodeCache) with the target in
// rcx, the index in rax, and what the target had in these two in Context::indirect_rax and _rcx.
#include "framework/driver/native/emit/operand_encoding.h"
#include "framework/driver/native/translate/emitter.h"

namespace assay::native {
void Emitter::emit_flow(const PlannedBlock& block, const Instruction& last) {
    const unsigned position = block.first + block.count - 1U;
    if (last.form->flow != Flow::kNone && last.form->flow != Flow::kTrap) {
        note_point(position);
        if (values_of(position)) emit_branch_values_before(last, position);
    }
    switch (last.form->flow) {
        case Flow::kNone:
        case Flow::kTrap:
            if (last.form->retried && predicts()) {
                new_site(position, 0, TRACE_SITE_PREDICTIONS, 0);
                emit_prediction(last, false, block.live_otherwise);
            }
            emit_continuation(block, last.next_pc());
            break;
        case Flow::kJump:
            emit_branch_values(position, last.target());
            emit_continuation(block, last.target());
            break;
        case Flow::kConditional:
        case Flow::kCounted:
            emit_conditional(block, last, position);
            break;
        case Flow::kCall:
            if (captures_branches(TRACE_DIRECT_CALLS))
                emit_branch_record(new_site(position, 0, TRACE_SITE_BRANCH, 0), last.target(), true,
                                   block.live_otherwise);
            emit_push_return(last.next_pc());
            emit_branch_values(position, last.target());
            emit_continuation(block, last.target());
            break;
        case Flow::kJumpIndirect:
        case Flow::kCallIndirect:
            emit_indirect(last, position);
            break;
        case Flow::kReturn:
            emit_return(last, position);
            break;
        case Flow::kSyscall:
            emit_branch_values(position, 0);
            emit_leave(ExitKind::kSyscall, last.pc);
            break;
        case Flow::kMarker:
            emit_branch_values(position, 0);
            emit_leave(ExitKind::kMarker, last.pc);
            break;
        case Flow::kInterruptReturn:
            emit_branch_values(position, 0);
            emit_leave(ExitKind::kInterruptReturn, last.pc);
            break;
        case Flow::kUnsupported:
            emit_leave(ExitKind::kUnsupported, last.pc);
            break;
    }
}

void Emitter::emit_continuation(const PlannedBlock& block, std::uint64_t target) {
    if (block.chained) return;
    const bool flags_live = block.live_otherwise.flags != 0;
    if (plan_.counts_at_exits) return emit_counted_jump(block, target, flags_live);
    direct_exit(hot_, hot_.patchable([&] { return hot_.jump(hot_.address); }), target);
}

// Returns where the displacement is. loop and jrcxz have only a short form: they jump over a jump.
std::uint64_t Emitter::emit_branch(const Instruction& last) {
    return hot_.patchable([&] {
        if (last.form->flow == Flow::kConditional)
            return hot_.jump_if(last.form->opcode & 0xf, hot_.address);
        if (has_prefix(last, kAddressSizePrefix)) hot_.u8(0x67);
        hot_.u8(last.bytes[last.form->opcode_offset]);
        hot_.u8(2);
        hot_.u8(0xeb);
        hot_.u8(5);
        return hot_.jump(hot_.address);
    });
}

void Emitter::emit_push_return(std::uint64_t return_pc) {
    if (return_pc < 0x80000000) return hot_.push_constant(static_cast<std::uint32_t>(return_pc));
    hot_.push_literal(cold_.address);
    cold_.u64(return_pc);
}

void Emitter::emit_indirect(const Instruction& last, unsigned position) {
    hot_.store_context(offsetof(Context, indirect_rax), RAX);
    hot_.store_context(offsetof(Context, indirect_rcx), RCX);
    emit_branch_target(last, position);
    if (last.form->flow == Flow::kCallIndirect) {
        emit_push_return(last.next_pc());
        emit_flow_record(position, TRACE_SITE_TARGET, RCX);
        emit_branch_values(position, kTargetInContext);
    } else {
        emit_branch_values(position, kTargetInContext);
    }
    emit_target_record(position, TRACE_INDIRECT_BRANCHES);
    if (predicts()) emit_target_prediction(last, position);
    emit_leaving_count(position);
    if (last.form->flow == Flow::kJumpIndirect) emit_left_check(position);
    hot_.u8(0x0f);  // movzx eax, cx
    hot_.u8(0xb7);
    hot_.u8(0xc1);
    emit_indirect_jump(hot_, plan_.version);
}

void Emitter::emit_return(const Instruction& last, unsigned position) {
    hot_.store_context(offsetof(Context, indirect_rax), RAX);
    hot_.store_context(offsetof(Context, indirect_rcx), RCX);
    hot_.with_memory(0x8b, RCX, Address{RSP, kNoGpr, 1, 0});
    const auto popped = static_cast<std::uint16_t>(last.immediate());
    hot_.lea(RSP, Address{RSP, kNoGpr, 1, 8 + popped});
    emit_flow_record(position, TRACE_SITE_RETURN, RSP);
    emit_branch_values(position, kTargetInContext);
    emit_target_record(position, TRACE_RETURNS);
    emit_leaving_count(position);
    emit_left_check(position);
    hot_.u8(0x0f);
    hot_.u8(0xb7);
    hot_.u8(0xc1);
    emit_indirect_jump(hot_, plan_.version);
}

// The operand of an indirect jump or call, FF /4 or FF /2, as that of mov rcx: 8B /1.
void Emitter::emit_branch_target(const Instruction& last, unsigned position) {
    const Form& form = *last.form;
    if (form.segment != Segment::kFlat) return emit_branch_target_in_segment(last, position);
    if (form.rip_relative) {
        const std::uint64_t target = last.rip_address();
        constexpr unsigned kLength = 7;
        const auto distance = static_cast<std::int64_t>(target - (hot_.address + kLength));
        const bool reaches = fits32(distance);
        if (!reaches) hot_.load_address(RCX, target);
        if (!reaches) return hot_.with_memory(0x8b, RCX, Address{RCX, kNoGpr, 1, 0});
        hot_.u8(0x48);
        hot_.u8(0x8b);
        hot_.u8(0x0d);
        hot_.u32(static_cast<std::uint32_t>(distance));
        return;
    }
    if (has_prefix(last, kAddressSizePrefix)) hot_.u8(0x67);
    hot_.u8(0x48 | extensions_of(last));
    hot_.u8(0x8b);
    hot_.u8((last.bytes[form.modrm_offset] & 0xc7) | RCX << 3);
    hot_.raw(last.bytes + form.modrm_offset + 1, form.length - form.modrm_offset - 1U);
}

}  // namespace assay::native
