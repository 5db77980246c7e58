// How a block ends: the control flow of its last instruction.
//
// An indirect branch arrives at the landings of its target's index (CodeCache) with the target in
// rcx, the index in rax, and what the target had in these two in Context::indirect_rax and _rcx.
//
// Where a conditional branch goes back, it is probably taken: that way stands right behind it. Else
// the other one does, and this one behind the unit's last block.
#include "framework/driver/native/emit/operand_encoding.h"
#include "framework/driver/native/translate/emitter.h"

namespace assay::native {

void Emitter::emit_flow(const PlannedBlock& block, const Instruction& last) {
    const unsigned position = block.first + block.count - 1U;
    if (last.form->flow != Flow::kNone && last.form->flow != Flow::kTrap) {
        writer_.note_point(position);
        captures_.before_branch(last, position);
    }
    switch (last.form->flow) {
        case Flow::kNone:
        case Flow::kTrap:
            captures_.leave({last, position, last.next_pc(), false, block.live_otherwise});
            emit_continuation(block, last.next_pc());
            break;
        case Flow::kJump:
            captures_.leave({last, position, last.target(), true, block.live_otherwise});
            emit_continuation(block, last.target());
            break;
        case Flow::kConditional:
        case Flow::kCounted:
            emit_conditional(block, last, position);
            break;
        case Flow::kCall:
            emit_push_return(last.next_pc());
            captures_.leave({last, position, last.target(), true, block.live_otherwise});
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
            leave_to_driver(ExitKind::kSyscall, last, position);
            break;
        case Flow::kMarker:
            leave_to_driver(ExitKind::kMarker, last, position);
            break;
        case Flow::kInterruptReturn:
            leave_to_driver(ExitKind::kInterruptReturn, last, position);
            break;
        case Flow::kUnsupported:
            writer_.leave(ExitKind::kUnsupported, last.pc);
            break;
    }
}

void Emitter::leave_to_driver(ExitKind kind, const Instruction& last, unsigned position) {
    captures_.leave({last, position, 0, true, {}});
    writer_.leave(kind, last.pc);
}

void Emitter::emit_continuation(const PlannedBlock& block, std::uint64_t target) {
    if (block.chained) return;
    const bool flags_live = block.live_otherwise.flags != 0;
    if (plan_.counts_at_exits) return boundaries_.counted_jump(block, target, flags_live);
    writer_.direct_exit(hot_, hot_.patchable([&] { return hot_.jump(hot_.address); }), target);
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
    cold_.align_data(sizeof return_pc);  // a program with the flag AC has it checked
    hot_.push_literal(cold_.address);
    cold_.u64(return_pc);
}

void Emitter::emit_indirect(const Instruction& last, unsigned position) {
    hot_.store_context(offsetof(Context, indirect_rax), RAX);
    hot_.store_context(offsetof(Context, indirect_rcx), RCX);
    copies_.load_branch_target(last, position);
    if (last.form->flow == Flow::kCallIndirect) emit_push_return(last.next_pc());
    captures_.leave_indirectly(last, position);
    boundaries_.count_leaving(position);
    if (last.form->flow == Flow::kJumpIndirect) boundaries_.check_left(position);
    hot_.load_index_of_target();
    emit_indirect_jump(hot_, plan_.version);
}

void Emitter::emit_return(const Instruction& last, unsigned position) {
    hot_.store_context(offsetof(Context, indirect_rax), RAX);
    hot_.store_context(offsetof(Context, indirect_rcx), RCX);
    hot_.with_memory(kLoad, RCX, Address{RSP, kNoGpr, 1, 0});
    const auto popped = static_cast<std::uint16_t>(last.immediate());
    hot_.lea(RSP, Address{RSP, kNoGpr, 1, 8 + popped});
    captures_.leave_indirectly(last, position);
    boundaries_.count_leaving(position);
    boundaries_.check_left(position);
    hot_.load_index_of_target();
    emit_indirect_jump(hot_, plan_.version);
}

void Emitter::emit_conditional(const PlannedBlock& block, const Instruction& last,
                               unsigned position) {
    if (!captures_.follow(last, position)) {
        if (plan_.counts_at_exits) return emit_counted_branch(block, last);
        writer_.direct_exit(hot_, emit_branch(last), last.target());
        return emit_continuation(block, last.next_pc());
    }
    if (last.form->flow == Flow::kConditional && last.target() <= last.pc) {
        const unsigned opposite = (last.form->opcode & 0xfU) ^ 1U;
        const std::uint64_t not_taken = hot_.jump_if(opposite, hot_.address);
        emit_way(block, true);
        hot_.patch(not_taken, hot_.address);
    } else {
        taken_ways_.push_back({writer_.block_index, emit_branch(last)});
    }
    emit_way(block, false);
}

// A jump back is taken most of the time: what it has to count stands right behind the branch. What
// others have is in the code that links them.
void Emitter::emit_counted_branch(const PlannedBlock& block, const Instruction& last) {
    const bool flags_live = block.live_if_taken.flags != 0;
    const unsigned opposite = (last.form->opcode & 0xfU) ^ 1U;
    if (block.goes_on_taken)
        return writer_.direct_exit(
            hot_, hot_.patchable([&] { return hot_.jump_if(opposite, hot_.address); }),
            last.next_pc(), block.end(), block.live_otherwise.flags != 0);
    if (last.form->flow == Flow::kConditional && last.target() <= last.pc) {
        const std::uint64_t not_taken = hot_.jump_if(opposite, hot_.address);
        boundaries_.counted_jump(block, last.target(), flags_live);
        hot_.patch(not_taken, hot_.address);
    } else {
        writer_.direct_exit(hot_, emit_branch(last), last.target(), block.end(), flags_live);
    }
    emit_continuation(block, last.next_pc());
}

void Emitter::emit_taken_ways() {
    for (const TakenWay& way : taken_ways_) {
        writer_.block_index = way.block;
        hot_.patch(way.jump, hot_.address);
        emit_way(plan_.blocks[way.block], true);
    }
}

void Emitter::emit_way(const PlannedBlock& block, bool taken) {
    const unsigned position = block.first + block.count - 1U;
    const Instruction& last = plan_.instructions[position];
    const Live live = taken ? block.live_if_taken : block.live_otherwise;
    const std::uint64_t target = taken ? last.target() : last.next_pc();
    captures_.leave({last, position, target, taken, live});
    if (!taken) return emit_continuation(block, target);
    writer_.direct_exit(hot_, hot_.patchable([&] { return hot_.jump(hot_.address); }), target);
}

}  // namespace assay::native
