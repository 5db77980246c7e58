#include "framework/driver/native/translate/copies.h"

#include "framework/driver/native/emit/operand_encoding.h"
#include "framework/driver/native/processor/shown_processor.h"

namespace assay::native {

void Copies::instruction(const Instruction& instruction, unsigned position) {
    const ShownProcessor& processor = shown_processor();
    const ProcessorUse use = instruction.form->processor_use;
    if (!processor.executes(*instruction.form)) return copy_undefined(position);
    if (use == ProcessorUse::kIdentify && processor.emulates_identification())
        return writer_.enter_driver(instruction, writer_.next_site());
    if (use == ProcessorUse::kSaveState && processor.limits_state())
        return copy_state_access(instruction, position);
    copy(instruction, position);
}

void Copies::copy(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    if (form.reads_base || form.sets_base) return copy_base_access(instruction);
    if (form.segment != Segment::kFlat) return copy_in_segment(instruction, position);
    if (!form.rip_relative) {
        writer_.note_point(position);
        hot_.raw(instruction.bytes, form.length);
        return;
    }
    const std::uint64_t target = instruction.rip_address();
    const auto distance = static_cast<std::int64_t>(target - (hot_.address + form.length));
    if (fits32(distance)) {
        writer_.note_point(position);
        hot_.raw(instruction.bytes, form.disp_offset);
        hot_.u32(static_cast<std::uint32_t>(distance));
        copy_rest(instruction, form.disp_offset + 4U);
    } else if (target < 0x80000000) {
        writer_.note_point(position);
        copy_absolute(instruction);
    } else {
        copy_based(instruction, position);
    }
}

// Without extensions for an operand that is [low register].
void Copies::copy_head(const Instruction& instruction, bool keeps_segment, unsigned extensions) {
    std::uint8_t head[16];
    hot_.raw(head, head_of(instruction, keeps_segment, extensions, head));
}

void Copies::copy_rest(const Instruction& instruction, unsigned from) {
    hot_.raw(instruction.bytes + from, instruction.form->length - from);
}

// A target below 2 GiB: [disp32] through a SIB byte without base and index.
void Copies::copy_absolute(const Instruction& instruction) {
    const Form& form = *instruction.form;
    copy_head(instruction, true);
    hot_.u8((instruction.bytes[form.modrm_offset] & 0xf8) | 4);
    hot_.u8(0x25);
    hot_.u32(static_cast<std::uint32_t>(instruction.rip_address()));
    copy_rest(instruction, form.disp_offset + 4U);
}

// A target out of reach: its address goes into a borrowed register.
void Copies::copy_based(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    const auto exclude = static_cast<GprMask>(~registers_for_address(form));
    const unsigned reg = scratch_.acquire(exclude, position);
    hot_.move_imm64(reg, instruction.rip_address());
    writer_.note_point(position);
    copy_head(instruction, true);
    hot_.u8((instruction.bytes[form.modrm_offset] & 0x38) | reg);
    copy_rest(instruction, form.disp_offset + 4U);
}

// The operand of an indirect jump or call, FF /4 or FF /2, as that of mov rcx: 8B /1.
void Copies::load_branch_target(const Instruction& last, unsigned position) {
    const Form& form = *last.form;
    if (form.segment != Segment::kFlat) return load_branch_target_in_segment(last, position);
    if (form.rip_relative) {
        const std::uint64_t target = last.rip_address();
        constexpr unsigned kLength = 7;
        const auto distance = static_cast<std::int64_t>(target - (hot_.address + kLength));
        const bool reaches = fits32(distance);
        if (!reaches) hot_.load_address(RCX, target);
        if (!reaches) return hot_.with_memory(kLoad, RCX, Address{RCX, kNoGpr, 1, 0});
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

// --- The processor that the program sees.

// An instruction that is undefined there faults, with its own address and registers.
void Copies::copy_undefined(unsigned position) {
    constexpr std::uint8_t kUd2[] = {0x0f, 0x0b};
    writer_.note_point(position);
    hot_.raw(kUd2, sizeof kUd2);
}

// These instructions save and restore the components in edx:eax that the real XCR0 has enabled.
// glibc asks for all that it knows (sysdeps/x86/cpu-features-offsets.sym, STATE_SAVE_MASK), and has
// an area for those that CPUID shows. So edx:eax is limited to the shown ones. An operand whose
// address needs rax or rdx gets another register first.
void Copies::copy_state_access(const Instruction& instruction, unsigned position) {
    const auto shown = static_cast<std::int32_t>(shown_processor().xcr0());
    static_assert(kKeptState >> 32 == 0);
    const bool moves_address =
        (address_registers(instruction.form->references[0]) & (bit(RAX) | bit(RDX))) != 0;
    const unsigned address = moves_address ? load_operand_address(instruction, position) : kNoGpr;
    scratch_.take(RAX, position);
    scratch_.take(RDX, position);
    const bool flags_live = plan_.flags_live[position] != 0;
    const unsigned mask = flags_live ? RDX : RAX;  // flags are kept in rax
    if (flags_live) hot_.registers(kStore, RDX, RAX);
    const KeptFlags flags(hot_, flags_live, true);
    hot_.group1(kAnd, mask, shown, false);
    flags.restore(hot_);
    if (flags_live) hot_.registers(kStore, RAX, RDX);
    hot_.load_address(RDX, 0);
    if (moves_address) {
        writer_.note_point(position);
        copy_at(instruction, address);
    } else {
        copy(instruction, position);
    }
    scratch_.make_way(instruction);
}

}  // namespace assay::native
