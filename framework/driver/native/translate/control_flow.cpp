#include "framework/driver/native/translate/control_flow.h"

#include "framework/driver/native/emit/operand_encoding.h"
#include "framework/driver/native/translate/emitter.h"
#include "framework/driver/native/translate/scratch.h"

namespace assay::native {
namespace {

constexpr std::size_t kPredictor = offsetof(Context, predictor);
constexpr std::size_t kContextNode = offsetof(Context, calls) + offsetof(CallState, node);
constexpr std::size_t kHistory = kPredictor + offsetof(Predictor, history);
constexpr std::size_t kNextStates = kPredictor + offsetof(Predictor, next_states);

// True if the instruction gives rsp a value that the block has not computed from rsp. Code that
// allocates memory of variable size computes it from rsp.
bool sets_from_elsewhere(const UnitPlan& plan, const PlannedBlock& block, unsigned instr) {
    const Instruction& setting = plan.instructions[instr];
    if (!setting.sets_stack()) return false;
    const auto source = static_cast<GprMask>(setting.form->reads & ~bit(RSP));
    if (setting.form->reference_count != 0 || source == 0) return true;
    for (unsigned i = instr; i-- > block.first;) {
        const Form& form = *plan.instructions[i].form;
        if (!(form.writes & source)) continue;
        if (form.reads & bit(RSP)) return false;
        if (form.kills & ~form.reads & source) return true;
    }
    return true;
}

// True if the instruction is the last change of rsp before an indirect jump, and if it changes a
// value from elsewhere. The unwinder of exceptions enters a function with `mov rsp, rcx; pop rcx;
// jmp rcx`. Only the pop ends the frames of the functions that were called there.
bool leaves_by_jump(const UnitPlan& plan, const PlannedBlock& block, unsigned instr) {
    const unsigned last = block.end() - 1;
    const auto changes_stack = [&](unsigned i) {
        return (plan.instructions[i].form->writes & bit(RSP)) != 0;
    };
    if (plan.instructions[last].form->flow != Flow::kJumpIndirect || instr == last) return false;
    if (!changes_stack(instr)) return false;
    for (unsigned i = instr + 1; i < last; ++i)
        if (changes_stack(i)) return false;
    for (unsigned i = block.first; i < instr; ++i)
        if (sets_from_elsewhere(plan, block, i)) return true;
    return false;
}

bool two_are_dead(GprMask live) {
    return __builtin_popcount(static_cast<GprMask>(~(live | bit(RSP)))) >= 2;
}

}  // namespace

// --- Records of branches.

// A conditional branch has one site for both of its ways. `aux` tells them apart.
void Branches::before_branch(const Instruction& branch, unsigned position) {
    if (follows(branch, position))
        sites_[writer_.block_index] = writer_.new_site(position, 0, TRACE_SITE_BRANCH, 0);
}

bool Branches::follows(const Instruction& branch, unsigned /*position*/) {
    const Flow flow = branch.form->flow;
    return (flow == Flow::kConditional || flow == Flow::kCounted) &&
           captures(TRACE_CONDITIONAL_BRANCHES);
}

void Branches::leave(const Way& way) {
    if (follows(way.last, way.position))
        record(sites_[writer_.block_index], way);
    else if (way.last.form->flow == Flow::kCall && captures(TRACE_DIRECT_CALLS))
        record(writer_.new_site(way.position, 0, TRACE_SITE_BRANCH, 0), way);
}

void Branches::record(std::uint32_t site, const Way& way) {
    const Borrowed regs(hot_, way.live.gprs, 2);
    const unsigned cursor = regs[0], value = regs[1];
    const auto base = static_cast<std::uint8_t>(cursor);
    hot_.load_context(cursor, kCursorOffset);
    hot_.load_address(value, way.target);
    writer_.append(hot_, cursor, value, site, way.taken ? 1 : 0);
    hot_.lea(cursor, Address{base, kNoGpr, 1, kRecordBytes});
    hot_.store_context(kCursorOffset, cursor);
}

void Branches::leave_indirectly(const Instruction& branch, unsigned position) {
    const bool returns = branch.form->flow == Flow::kReturn;
    if (!captures(returns ? TRACE_RETURNS : TRACE_INDIRECT_BRANCHES)) return;
    writer_.record_by_rax(writer_.new_site(position, 0, TRACE_SITE_BRANCH, 0), RCX, 1);
}

// --- Predictions.

void Predictions::leave(const Way& way) {
    if (!is_predicted(way.last)) return;
    if (way.last.form->flow == Flow::kNone)
        writer_.new_site(way.position, 0, TRACE_SITE_PREDICTIONS, 0);
    predict(way.last, way.taken, way.live);
}

// One register is enough, but two are faster. Uses arithmetic if flags are dead, otherwise moves.
void Predictions::predict(const Instruction& branch, bool taken, Live live) {
    const bool two = live.flags != 0 || two_are_dead(live.gprs) || writer_.offset_in_node() != 0;
    const Borrowed regs(hot_, live.gprs, two ? 2 : 1);
    const std::uint8_t history = regs[0], state = regs[two ? 1 : 0];
    const auto outcome = taken ? static_cast<std::int32_t>(taken_bit(spec_.predictor)) : 0;
    std::size_t counter =
        kPredictor + offsetof(Predictor, counters) + first_counter(spec_.predictor, branch.pc);
    // The carry is set if the counter is below 3 for a taken branch, or 0 for another one.
    const unsigned extreme = taken ? kSurelyTaken : 1, added = taken ? 0 : 0xff;
    hot_.with_context_again(kLoad, state, kHistory, false);
    if (two) hot_.zero_extend(history, state, 1);
    hot_.lea(state, Address{state, state, 1, outcome}, false);
    hot_.with_context_again(kStore, state, kHistory, false);
    if (!two) {
        // The shift leaves half of the outcome's bit. It does not belong to the history.
        hot_.shift_right_by_one(history);
        hot_.zero_extend(history, history, 1);
        counter -= static_cast<std::size_t>(outcome / 2);
        hot_.group1_context_byte(kCompare, counter, history, extreme);
        hot_.group1_context_byte(kAddCarry, counter, history, added);
        hot_.load_context_byte(state, counter, history);
    } else {
        hot_.load_context_byte(state, counter, history);
        if (live.flags == 0) {
            hot_.group1_byte(kCompare, state, extreme);
            hot_.group1_byte(kAddCarry, state, added);
        } else {
            hot_.load_context_byte(state, kNextStates + (taken ? kCounterStates : 0), state);
        }
        hot_.store_context_byte(counter, state, history);
    }
    const std::int32_t offset = writer_.offset_in_node();
    if (live.flags == 0) {
        hot_.with_context_indexed(kGroup1Byte, kAdd, writer_.counter(), state, 8);
        hot_.u8(1);
        if (offset == 0) return;
        hot_.load_context(history, kContextNode);
        hot_.with_memory(kGroup1Byte, kAdd, Address{history, state, 8, offset});
        hot_.u8(1);
        return;
    }
    hot_.with_context_indexed(kLoad, history, writer_.counter(), state, 8);
    hot_.lea(history, Address{history, kNoGpr, 1, 1});
    hot_.with_context_indexed(kStore, history, writer_.counter(), state, 8);
    if (offset == 0) return;
    // One register gets the word's address, and then the other one its value.
    hot_.load_context(history, kContextNode);
    hot_.lea(history, Address{history, state, 8, offset});
    hot_.with_memory(kLoad, state, Address{history, kNoGpr, 1, 0});
    hot_.lea(state, Address{state, kNoGpr, 1, 1});
    hot_.with_memory(kStore, state, Address{history, kNoGpr, 1, 0});
}

void Predictions::leave_indirectly(const Instruction& branch, unsigned position) {
    if (!is_predicted(branch)) return;
    const bool flags_live = plan_.flags_live[position] != 0;
    const std::size_t entry = kPredictor + offsetof(Predictor, targets) +
                              target_entry(spec_.predictor, branch.pc) * sizeof(std::uint64_t);
    if (flags_live) {
        save_flags(hot_, true);
        hot_.store_context(offsetof(Context, flags_rax), RAX);
    }
    hot_.load_address(RAX, 0);
    hot_.with_context(kCompareMemory, RCX, entry);
    hot_.store_context(entry, RCX);
    hot_.set_if(kNotEqual, RAX);
    hot_.with_context_indexed(kGroup1Byte, kAdd, writer_.counter(), RAX, 8);
    hot_.u8(1);
    if (const std::int32_t offset = writer_.offset_in_node(); offset != 0) {
        hot_.shift_left_by_three(RAX);
        hot_.with_context(kAddMemory, RAX, kContextNode);
        hot_.with_memory(kGroup1Byte, kAdd, Address{RAX, kNoGpr, 1, offset});
        hot_.u8(1);
    }
    if (flags_live) {
        hot_.load_context(RAX, offsetof(Context, flags_rax));
        restore_flags(hot_, true);
    }
}

// --- Calls.

bool Calls::leaves_stack(const UnitPlan& plan, const PlannedBlock& block, unsigned instr) {
    return sets_from_elsewhere(plan, block, instr) || leaves_by_jump(plan, block, instr);
}

// Right before a call, because the call's references belong to the caller.
void Calls::place(Placer& placer, const PlannedBlock& block, unsigned instr) {
    const Flow flow = plan_.instructions[instr].form->flow;
    if (flow == Flow::kCall || flow == Flow::kCallIndirect) placer.place_before(instr);
    const bool runs_on = flow == Flow::kNone || flow == Flow::kTrap;
    if (runs_on && leaves_stack(plan_, block, instr)) placer.place_behind(instr);
}

// Records the stack pointer at this point.
void Calls::emit(const Item& item) {
    const unsigned kind = item.is_behind() ? TRACE_SITE_STACK : TRACE_SITE_CALL;
    const GprMask changed = plan_.instructions[item.instr].form->writes;
    const unsigned cursor = scratch_.cursor(changed, item.instr);
    writer_.append(hot_, cursor, RSP, writer_.new_site(item.instr, 0, kind, 0));
    hot_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, kRecordBytes});
}

void Calls::leave_indirectly(const Instruction& branch, unsigned position) {
    const Flow flow = branch.form->flow;
    if (flow == Flow::kCallIndirect)
        writer_.record_by_rax(writer_.new_site(position, 0, TRACE_SITE_TARGET, 0), RCX);
    else if (flow == Flow::kReturn)
        writer_.record_by_rax(writer_.new_site(position, 0, TRACE_SITE_RETURN, 0), RSP);
}

// Emits the end of a block: the control flow of its last instruction.
//
// An indirect branch arrives at the landings of its target's index (CodeCache). rcx has the target,
// rax the index, and Context::indirect_rax and _rcx the program's values.
//
// A conditional branch that goes back is probably taken. The code of its taken way comes right
// after it. For other branches, the code of the other way comes right after, and the taken way
// after the unit's last block.

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

// Returns the address of the displacement. loop and jrcxz are short, and jump over a jump.
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
    cold_.align_data(sizeof return_pc);  // the processor checks this if flag AC is set
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

// A backward jump is mostly taken. Its counting code comes right after the branch. Other branches
// count in the code that links them.
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
