// The target's own instructions: copied as they are, or rewritten where a copy would mean something
// else at its new place.
#include "framework/driver/native/emit/operand_encoding.h"
#include "framework/driver/native/processor/hidden_features.h"
#include "framework/driver/native/translate/emitter.h"
#include "framework/driver/native/translate/values.h"

namespace assay::native {
void Emitter::emit_instruction(const Instruction& instruction, unsigned position) {
    const trace::ValueList* const list = values_of(position);
    scratch_.make_way(instruction,
                      list ? value_registers(*instruction.form, *list).before : GprMask{0});
    if (list) emit_values_before(instruction, position);
    emit_translated(instruction, position);
    if (list) emit_values_behind(instruction, position);
}

void Emitter::emit_translated(const Instruction& instruction, unsigned position) {
    const bool is_host = spec_.cpu_level == trace::CpuLevel::kHost;
    const ProcessorUse use = instruction.form->processor_use;
    if (use == ProcessorUse::kIdentify && (!is_host || hidden_features() != Hidden::kNothing))
        return emit_driver_part(instruction, next_site_);
    if (use == ProcessorUse::kSaveState && !is_host) return emit_state_copy(instruction, position);
    emit_copy(instruction, position);
}

void Emitter::emit_copy(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    if (form.reads_base || form.sets_base) return emit_base(instruction, position);
    if (form.segment != Segment::kFlat) return emit_segment_copy(instruction, position);
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
        emit_rest(instruction, form.disp_offset + 4U);
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
    if (!instruction.form->may_fault) return;
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

// Without extensions for an operand that is [low register].
void Emitter::emit_head(const Instruction& instruction, bool keeps_segment, unsigned extensions) {
    std::uint8_t head[16];
    hot_.raw(head, head_of(instruction, keeps_segment, extensions, head));
}

void Emitter::emit_rest(const Instruction& instruction, unsigned from) {
    hot_.raw(instruction.bytes + from, instruction.form->length - from);
}

// A target below 2 GiB: [disp32] through a SIB byte without base and index.
void Emitter::emit_absolute_copy(const Instruction& instruction) {
    const Form& form = *instruction.form;
    emit_head(instruction, true);
    hot_.u8((instruction.bytes[form.modrm_offset] & 0xf8) | 4);
    hot_.u8(0x25);
    hot_.u32(static_cast<std::uint32_t>(instruction.rip_address()));
    emit_rest(instruction, form.disp_offset + 4U);
}

// A target out of reach: its address goes into a borrowed register.
void Emitter::emit_based_copy(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    const auto exclude = static_cast<GprMask>(~registers_for_address(form));
    const unsigned reg = scratch_.acquire(exclude, position);
    hot_.move_imm64(reg, instruction.rip_address());
    note_point(position);
    emit_head(instruction, true);
    hot_.u8((instruction.bytes[form.modrm_offset] & 0x38) | reg);
    emit_rest(instruction, form.disp_offset + 4U);
}

}  // namespace assay::native
