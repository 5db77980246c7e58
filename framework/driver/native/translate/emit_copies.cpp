// The target's own instructions: copied as they are, or rewritten where a copy would mean something
// else at its new place or with the driver's gs.
#include "framework/driver/native/translate/emitter.h"
#include "framework/driver/native/translate/values.h"

#include <algorithm>

namespace assay::native {
namespace {

// The register of rdfsbase and its relatives.
unsigned base_operand(const Instruction& instruction) {
    const unsigned at = instruction.form->modrm_offset;
    unsigned extension = 0;
    for (unsigned i = 0; i < at; ++i)
        if ((instruction.bytes[i] & 0xf0) == 0x40) extension = instruction.bytes[i] & 1U;
    return (instruction.bytes[at] & 7U) | extension << 3;
}

bool is_segment_prefix(unsigned byte) {
    return (byte & 0xe7) == 0x26 || byte == 0x64 || byte == 0x65;
}

// The bytes before ModRM, as they are for an operand [low register], or without registers; with
// `keeps_segment` in its segment. Prefixes: SDM volume 2, 2.1.1 and 2.2.1; VEX: 2.3.5; EVEX: 2.7.1,
// where X and B are inverted. A RIP-relative operand may have any X and B: they mean nothing there.
unsigned head_without_memory(const Instruction& instruction, bool keeps_segment,
                             std::uint8_t* out) {
    constexpr unsigned kAddressSize = 0x67, kVex = 0xc4, kEvex = 0x62;
    constexpr unsigned kRexXB = 3, kInvertedXB = 0x60;
    const unsigned end = instruction.form->modrm_offset;
    unsigned count = 0, at = 0;
    for (; at < end; ++at) {
        const unsigned byte = instruction.bytes[at];
        const bool segment = is_segment_prefix(byte);
        const bool other = byte == 0x66 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3;
        if (!segment && !other && byte != kAddressSize) break;
        if (other || (segment && keeps_segment)) out[count++] = static_cast<std::uint8_t>(byte);
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

void Emitter::emit_head(const Instruction& instruction, bool keeps_segment) {
    std::uint8_t head[16];
    const unsigned count = head_without_memory(instruction, keeps_segment, head);
    hot_.raw(head, count);
}

// A target below 2 GiB: [disp32] through a SIB byte without base and index.
void Emitter::emit_absolute_copy(const Instruction& instruction) {
    const Form& form = *instruction.form;
    emit_head(instruction, true);
    hot_.u8((instruction.bytes[form.modrm_offset] & 0xf8) | 4);
    hot_.u8(0x25);
    hot_.u32(static_cast<std::uint32_t>(instruction.rip_address()));
    hot_.raw(instruction.bytes + form.disp_offset + 4, form.length - form.disp_offset - 4U);
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
    hot_.raw(instruction.bytes + form.disp_offset + 4, form.length - form.disp_offset - 4U);
}

// The address of an operand in gs goes into a borrowed register, and the instruction loses the
// prefixes that concern it: segment, address size, and the extensions of base and index.
void Emitter::emit_gs_copy(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    const auto exclude = static_cast<GprMask>(~registers_for_address(form));
    scratch_.give_cursor_back();  // it may be in one of two that there are
    const unsigned a = scratch_.acquire(exclude, position);
    const unsigned b = scratch_.acquire(static_cast<GprMask>(exclude | bit(a)), position);
    emit_gs_address(instruction, a);
    hot_.load_context(b, offsetof(Context, target_gs));
    hot_.lea(a, Address{static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), 1, 0});
    note_point(position);
    emit_head(instruction, false);
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

}  // namespace assay::native
