#include "framework/driver/native/translate/emitter.h"

#include "framework/driver/native/translate/values.h"

#include <algorithm>

namespace assay::native {
namespace {

bool fits32(std::int64_t value) {
    return value == static_cast<std::int32_t>(value);
}

bool has_prefix(const Instruction& instruction, std::uint8_t prefix) {
    for (unsigned i = 0; i < instruction.form->opcode_offset; ++i)
        if (instruction.bytes[i] == prefix) return true;
    return false;
}

// The REX prefix of a one-byte-map instruction, 0 if it has none.
std::uint8_t rex_of(const Instruction& instruction) {
    const unsigned at = instruction.form->opcode_offset;
    return at > 0 && (instruction.bytes[at - 1] & 0xf0) == 0x40 ? instruction.bytes[at - 1] : 0;
}

// The register of rdfsbase and its relatives.
unsigned base_operand(const Instruction& instruction) {
    const unsigned at = instruction.form->modrm_offset;
    unsigned extension = 0;
    for (unsigned i = 0; i < at; ++i)
        if ((instruction.bytes[i] & 0xf0) == 0x40) extension = instruction.bytes[i] & 1U;
    return (instruction.bytes[at] & 7U) | extension << 3;
}

// The bytes before ModRM, as they are for an operand [low register] without a segment. Prefixes:
// SDM volume 2, 2.1.1 and 2.2.1; VEX: 2.3.5; EVEX: 2.7.1, where X and B are inverted.
unsigned head_without_memory(const Instruction& instruction, std::uint8_t* out) {
    constexpr unsigned kSegmentGs = 0x65, kAddressSize = 0x67, kVex = 0xc4, kEvex = 0x62;
    constexpr unsigned kRexXB = 3, kInvertedXB = 0x60;
    const unsigned end = instruction.form->modrm_offset;
    unsigned count = 0, at = 0;
    for (; at < end; ++at) {
        const unsigned byte = instruction.bytes[at];
        const bool prefix = byte == kSegmentGs || byte == kAddressSize || byte == 0x66 ||
                            byte == 0xf0 || byte == 0xf2 || byte == 0xf3;
        if (!prefix) break;
        if (byte != kSegmentGs && byte != kAddressSize)
            out[count++] = static_cast<std::uint8_t>(byte);
    }
    const unsigned first = instruction.bytes[at];
    if ((first & 0xf0) == 0x40) {
        out[count++] = static_cast<std::uint8_t>(first & ~kRexXB);
        ++at;
    } else if (first == kVex || first == kEvex) {
        out[count++] = static_cast<std::uint8_t>(first);
        out[count++] = static_cast<std::uint8_t>(instruction.bytes[at + 1] | kInvertedXB);
        at += 2;
    }
    while (at < end) out[count++] = instruction.bytes[at++];
    return count;
}

}  // namespace

void Emitter::emit(Output& output, TraceTables* trace) {
    output_ = &output;
    trace_ = trace;
    hot_begin_ = hot_.address;
    for (unsigned i = 0; i < plan_.blocks.size(); ++i) emit_block(i);
    emit_taken_ways();
}

void Emitter::emit_block(unsigned index) {
    const PlannedBlock& planned = plan_.blocks[index];
    block_index_ = index;
    counted_ = false;
    next_item_ = planned.first_item;
    scratch_.begin(planned);
    if (trace_) {
        for (unsigned i = 0; i < planned.count; ++i)
            trace_->add_instr(plan_.instructions[planned.first + i]);
        trace_->add_block(planned.pc, plan_.collects());
    }
    Block record;
    record.version = plan_.version;
    record.pc = planned.pc;
    record.bytes = static_cast<std::uint16_t>(planned.end_pc - planned.pc);
    record.instr_count = planned.count;
    record.first_length = plan_.instructions[planned.first].form->length;
    record.first_instr = global_instr(planned.first);
    record.chained = planned.chained;
    record.previous_fetched = planned.previous_fetched;
    record.id = numbers_.block + index;
    record.counts_at_exits = plan_.counts_at_exits;
    if (planned.counted_in_interval) counted_by_ = static_cast<std::uint8_t>(index);
    record.counted_by = counted_by_;
    record.to_count = plan_.counts_at_exits
                          ? planned.first
                          : static_cast<std::uint16_t>(instructions_from(planned));
    if (index == 0 && plan_.landing) emit_landing(planned, record);
    emit_entry(planned, record);
    output_->blocks.push_back(record);

    const unsigned last = planned.first + planned.count - 1U;
    for (unsigned i = planned.first; i <= last; ++i) {
        emit_items(planned, i);
        const Instruction& instruction = plan_.instructions[i];
        const bool flow = instruction.form->flow != Flow::kNone;
        if (i == last && flow) scratch_.give_back_all();
        if (flow && instruction.form->flow != Flow::kTrap) break;
        emit_instruction(instruction, i);
        if (plan_.sets_stack[i]) emit_stack_pointer(i, TRACE_SITE_STACK);
    }
    scratch_.give_back_all();
    emit_flow(planned, plan_.instructions[last]);
}

// As CodeCache's landings, but shorter. It keeps the flags even where its own block does not read
// them: who arrives may want another one of the same index, whose block does.
void Emitter::emit_landing(const PlannedBlock& block, Block& record) {
    const std::uint64_t next = hot_.patchable([&] {
        record.landing = hot_.address;
        hot_.load_address(RAX, block.pc);
        // rcx -= pc, by its complement: rcx + ~pc + 1
        hot_.u8(0x48);  // not rax
        hot_.u8(0xf7);
        hot_.u8(0xd0);
        hot_.lea(RCX, Address{RCX, RAX, 1, 1});
        hot_.u8(0xe3);  // jrcxz over the mismatch part, which makes rcx the target again
        hot_.u8(3 + 4 + 5);
        hot_.u8(0x48);  // not rax
        hot_.u8(0xf7);
        hot_.u8(0xd0);
        hot_.lea(RCX, Address{RCX, RAX, 1, 0});
        return hot_.jump(cache_.indirect_miss());
    });
    record.to_landing_next = static_cast<std::uint8_t>(next - record.landing);
    const GprMask live = plan_.gprs_live[block.first];
    if (live & bit(RCX)) hot_.load_context(RCX, offsetof(Context, indirect_rcx));
    if (live & bit(RAX)) hot_.load_context(RAX, offsetof(Context, indirect_rax));
}

// The check of the first instruction's fetch stands before the block, or, where the block before
// has just fetched the line and runs on into this one, aside.
void Emitter::emit_entry(const PlannedBlock& block, Block& record) {
    record.entry = record.entry_fetched = hot_.address;
    if (block.checked) emit_check(block);
    emit_gate(block);
    if (!plan_.collects()) return;
    if (spec_.captures & trace::kCaptureFetches) emit_first_fetch(block, record);
    if (spec_.interval == 0 || block.counted_in_interval) return;
    record.entry_counted = record.entry;
    record.entry = record.entry_fetched = emit_interval_arrival(block, record.entry);
}

void Emitter::emit_first_fetch(const PlannedBlock& block, Block& record) {
    const bool flags_live = plan_.flags_live[block.first] != 0;
    if (!block.previous_fetched) {
        emit_fetch_check(hot_, block.first, block.first, flags_live);
        if (!block.has_gate()) record.entry_fetched = hot_.address;
        return;
    }
    const std::uint64_t body = hot_.address;
    record.entry = cold_.address;
    emit_fetch_check(cold_, block.first, block.first, flags_live);
    cold_.jump(body);
}

// To the driver, which comes back if the code is still what it was.
void Emitter::emit_check(const PlannedBlock& block) {
    Exit exit;
    exit.kind = ExitKind::kCheck;
    exit.block = block_index_;
    exit.target = block.pc;
    if (plan_.counts_at_exits) count_when_taken(exit, block.first);
    emit_exit_id(hot_, add_exit(exit));
    hot_.jump(cache_.exit_thunk());
    output_->exits.back().stub = hot_.address;
}

void Emitter::emit_items(const PlannedBlock& block, unsigned position) {
    while (next_item_ < block.first_item + block.item_count &&
           plan_.items[next_item_].position == position) {
        const Item& item = plan_.items[next_item_++];
        switch (item.kind) {
            case ItemKind::kCount:
                emit_count(item);
                break;
            case ItemKind::kFetch:
                emit_fetch_check(hot_, item.instr, item.position, item.flags_live);
                break;
            case ItemKind::kData:
                emit_data(item);
                break;
            case ItemKind::kSpecial:
                emit_special(item);
                break;
            case ItemKind::kCall:
                emit_stack_pointer(item.instr, TRACE_SITE_CALL);
                break;
        }
    }
}

// Of the block's executions, in the context.
std::size_t Emitter::counter_offset() const {
    constexpr std::size_t kCounterBytes = sizeof(std::uint64_t);
    const std::size_t block = numbers_.block + block_index_;
    return kCountersInContext + block * trace::counters(spec_) * kCounterBytes;
}

void Emitter::emit_count(const Item& item) {
    const std::size_t counter = counter_offset();
    if (item.flags_live) {
        const unsigned reg = scratch_.acquire(0, item.position);
        hot_.load_context(reg, counter);
        hot_.lea(reg, Address{static_cast<std::uint8_t>(reg), kNoGpr, 1, 1});
        hot_.store_context(counter, reg);
    } else if (plan_.blocks[block_index_].in_short_loop) {
        hot_.increment_context_again(counter);
    } else {
        hot_.increment_context(counter);
    }
    counted_ = true;
}

void Emitter::emit_special(const Item& item) {
    const Form& form = *plan_.instructions[item.instr].form;
    const bool bit_string = form.special == Special::kBitString;
    const bool references = spec_.captures & trace::kCaptureReferences;
    if (spec_.footprints) new_site(item.instr, 0, TRACE_SITE_FOOTPRINT, 0);
    const std::uint32_t first_site = next_site_;
    for (unsigned r = 0; references && r < form.reference_count; ++r)
        new_site(item.instr, bit_string ? 1 : form.references[r].bytes, form.references[r].kind, r);
    if (form.trace_flags & TRACE_INSTR_VARIABLE) new_site(item.instr, 0, TRACE_SITE_COUNT, 0);
    if (form.special == Special::kString && predicts())
        new_site(item.instr, 0, TRACE_SITE_PREDICTIONS, 0);
    emit_driver_part(plan_.instructions[item.instr], first_site);
}

// Leaves to the driver, which does its part of the instruction, and goes on behind.
void Emitter::emit_driver_part(const Instruction& instruction, std::uint32_t first_site) {
    scratch_.give_back_all();
    Exit exit;
    exit.kind = ExitKind::kSpecial;
    exit.block = block_index_;
    exit.target = instruction.pc;
    exit.site = first_site;
    exit.special = numbers_.special + static_cast<std::uint32_t>(output_->specials.size());
    output_->specials.push_back(instruction);
    emit_exit_id(hot_, add_exit(exit));
    hot_.jump(cache_.exit_thunk());
    output_->exits.back().stub = hot_.address;
}

// --- Copying.

void Emitter::emit_instruction(const Instruction& instruction, unsigned position) {
    const trace::ValueList* const list = values_of(position);
    scratch_.make_way(instruction,
                      list ? value_registers(*instruction.form, *list).before : GprMask{0});
    if (list) emit_values_before(instruction, position);
    emit_translated(instruction, position);
    if (list) emit_values_behind(instruction, position);
}

void Emitter::emit_translated(const Instruction& instruction, unsigned position) {
    if (spec_.cpu_level != trace::CpuLevel::kHost) {
        if (instruction.form->processor_use == ProcessorUse::kIdentify)
            return emit_driver_part(instruction, next_site_);
        if (instruction.form->processor_use == ProcessorUse::kSaveState)
            return emit_state_copy(instruction, position);
    }
    emit_copy(instruction, position);
    if (instruction.form->sets_fs_base)
        hot_.store_context(offsetof(Context, target_fs), base_operand(instruction));
}

void Emitter::emit_copy(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    if (form.uses_gs) return emit_gs_copy(instruction, position);
    if (form.reads_gs_base || form.sets_gs_base) return emit_gs_base(instruction);
    if (!form.rip_relative) {
        note_point(position);
        hot_.raw(instruction.bytes, form.length);
        return;
    }
    const std::uint64_t target = instruction.rip_address();
    const auto distance = static_cast<std::int64_t>(target - (hot_.address + form.length));
    if (fits32(distance)) {
        note_point(position);
        hot_.raw(instruction.bytes, form.disp_offset);
        hot_.u32(static_cast<std::uint32_t>(distance));
        hot_.raw(instruction.bytes + form.disp_offset + 4, form.length - form.disp_offset - 4U);
    } else if (target < 0x80000000) {
        note_point(position);
        emit_absolute_copy(instruction);
    } else {
        emit_based_copy(instruction, position);
    }
}

// An instruction of the target comes next.
void Emitter::note_point(unsigned position) {
    const PlannedBlock& block = plan_.blocks[block_index_];
    const Instruction& instruction = plan_.instructions[position];
    const Scratch::State state = scratch_.state();
    RecoveryPoint point;
    point.pc_offset = static_cast<std::uint16_t>(instruction.pc - block.pc);
    point.offset = static_cast<std::uint32_t>(hot_.address - hot_begin_);
    point.saved = state.saved;
    point.cursor = state.cursor;
    point.block = static_cast<std::uint8_t>(block_index_);
    point.executed = static_cast<std::uint8_t>(position - block.first + 1U);
    point.counted = counted_;
    point.rcx_is_target = instruction.form->flow == Flow::kCallIndirect;
    output_->points.push_back(point);
}

// A target below 2 GiB: [disp32] through a SIB byte without base and index.
void Emitter::emit_absolute_copy(const Instruction& instruction) {
    const Form& form = *instruction.form;
    hot_.raw(instruction.bytes, form.modrm_offset);
    hot_.u8((instruction.bytes[form.modrm_offset] & 0xf8) | 4);
    hot_.u8(0x25);
    hot_.u32(static_cast<std::uint32_t>(instruction.rip_address()));
    hot_.raw(instruction.bytes + form.disp_offset + 4, form.length - form.disp_offset - 4U);
}

// A target out of reach: its address goes into a borrowed register. The prefixes' base bits are
// those of a low register already: the encoding of a RIP-relative operand leaves them clear.
void Emitter::emit_based_copy(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    constexpr GprMask kLow = bit(RAX) | bit(RCX) | bit(RDX) | bit(RBX) | bit(RSI) | bit(RDI);
    const auto exclude = static_cast<GprMask>(~kLow | form.reads | form.writes);
    const unsigned reg = scratch_.acquire(exclude, position);
    hot_.move_imm64(reg, instruction.rip_address());
    note_point(position);
    hot_.raw(instruction.bytes, form.modrm_offset);
    hot_.u8((instruction.bytes[form.modrm_offset] & 0x38) | reg);
    hot_.raw(instruction.bytes + form.disp_offset + 4, form.length - form.disp_offset - 4U);
}

// The address of an operand in gs goes into a borrowed register, and the instruction loses the
// prefixes that concern it: segment, address size, and the extensions of base and index.
void Emitter::emit_gs_copy(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    constexpr GprMask kLow = bit(RAX) | bit(RCX) | bit(RDX) | bit(RBX) | bit(RSI) | bit(RDI);
    const auto exclude = static_cast<GprMask>(~kLow | form.reads | form.writes);
    const unsigned a = scratch_.acquire(exclude, position);
    const unsigned b = scratch_.acquire(static_cast<GprMask>(exclude | bit(a)), position);
    emit_gs_address(instruction, a);
    hot_.load_context(b, offsetof(Context, target_gs));
    hot_.lea(a, Address{static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), 1, 0});
    note_point(position);
    std::uint8_t head[16];
    const unsigned count = head_without_memory(instruction, head);
    hot_.raw(head, count);
    hot_.u8((instruction.bytes[form.modrm_offset] & 0x38U) | a);
    hot_.raw(instruction.bytes + form.imm_offset, form.imm_bytes);
}

// lea of the operand, without the segment.
void Emitter::emit_gs_address(const Instruction& instruction, unsigned reg) {
    const Form& form = *instruction.form;
    const auto reference = std::find_if(
        form.references, form.references + form.reference_count,
        [](const MemoryReference& candidate) { return candidate.segment == Segment::kGs; });
    const auto offset = static_cast<std::int32_t>(instruction.displacement() + reference->bias);
    if (reference->base == kRip)
        hot_.load_address(reg, instruction.rip_address());
    else
        hot_.lea(reg, Address{reference->base, reference->index, reference->scale, offset},
                 !reference->address32);
}

void Emitter::emit_gs_base(const Instruction& instruction) {
    const unsigned reg = base_operand(instruction);
    if (instruction.form->sets_gs_base)
        hot_.store_context(offsetof(Context, target_gs), reg);
    else
        hot_.load_context(reg, offsetof(Context, target_gs));
}

// --- Control flow.

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
        if (has_prefix(last, 0x67)) hot_.u8(0x67);
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
    emit_branch_target(last);
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
void Emitter::emit_branch_target(const Instruction& last) {
    const Form& form = *last.form;
    if (form.rip_relative) {
        const std::uint64_t target = last.rip_address();
        const auto distance = static_cast<std::int64_t>(target - (hot_.address + 7));
        if (fits32(distance)) {
            hot_.u8(0x48);
            hot_.u8(0x8b);
            hot_.u8(0x0d);
            hot_.u32(static_cast<std::uint32_t>(distance));
        } else {
            hot_.load_address(RCX, target);
            hot_.with_memory(0x8b, RCX, Address{RCX, kNoGpr, 1, 0});
        }
        return;
    }
    if (has_prefix(last, 0x64)) hot_.u8(0x64);
    if (has_prefix(last, 0x67)) hot_.u8(0x67);
    hot_.u8(0x48 | (rex_of(last) & 3));
    hot_.u8(0x8b);
    hot_.u8((last.bytes[form.modrm_offset] & 0xc7) | RCX << 3);
    hot_.raw(last.bytes + form.modrm_offset + 1, form.length - form.modrm_offset - 1U);
}

void Emitter::emit_leave(ExitKind kind, std::uint64_t pc) {
    Exit exit;
    exit.kind = kind;
    exit.block = block_index_;
    exit.target = pc;
    if (plan_.counts_at_exits) count_when_taken(exit, plan_.blocks[block_index_].end());
    emit_exit_id(hot_, add_exit(exit));
    hot_.jump(cache_.exit_thunk());
}

// The jump at `site` leaves the unit: to the driver, until it is linked.
void Emitter::direct_exit(Assembler& code, std::uint64_t site, std::uint64_t target,
                          unsigned uncounted, bool flags_live) {
    Exit exit;
    exit.block = block_index_;
    exit.target = target;
    exit.site = site;
    exit.stub = cold_.address;
    exit.counted_beyond = plan_.blocks[counted_by_].counted_beyond;
    if (plan_.counts_at_exits) count_when_taken(exit, uncounted);
    exit.flags_live = flags_live;
    code.patch(site, exit.stub);
    emit_exit_id(cold_, add_exit(exit));
    cold_.jump(cache_.exit_thunk());
}

std::uint32_t Emitter::add_exit(const Exit& exit) {
    output_->exits.push_back(exit);
    return kFirstExit + numbers_.exit + static_cast<std::uint32_t>(output_->exits.size() - 1);
}

void Emitter::emit_exit_id(Assembler& code, std::uint32_t exit) {
    code.with_context(0xc7, 0, offsetof(Context, exit_id), false);
    code.u32(exit);
}

}  // namespace assay::native
