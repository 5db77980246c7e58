#include "framework/driver/native/translate/copies.h"

#include "framework/driver/native/emit/operand_encoding.h"
#include "framework/driver/native/processor/cpu_levels.h"
#include "framework/driver/native/processor/hidden_features.h"

namespace assay::native {

void Copies::instruction(const Instruction& instruction, unsigned position) {
    const bool is_host = spec_.cpu_level == trace::CpuLevel::kHost;
    const ProcessorUse use = instruction.form->processor_use;
    if (use == ProcessorUse::kIdentify && (!is_host || hidden_features() != Hidden::kNothing))
        return writer_.enter_driver(instruction, writer_.next_site());
    if (use == ProcessorUse::kSaveState && !is_host)
        return copy_state_access(instruction, position);
    copy(instruction, position);
}

void Copies::copy(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    if (form.reads_base || form.sets_base) return copy_base_access(instruction, position);
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

// --- Saving and restoring of vector state, where --cpu= shows less of it than there is.

// The components saved and restored are those in edx:eax that XCR0 has enabled, and the real XCR0
// has more than the one that the program was shown: glibc always asks for all that it knows
// (sysdeps/x86/cpu-features-offsets.sym, STATE_SAVE_MASK) in an area as large as CPUID says. So
// edx:eax is limited to the level's. PEXT and PDEP with the same mask make an AND that leaves the
// flags alone; a processor for this level has them.
void Copies::copy_state_access(const Instruction& instruction, unsigned position) {
    if (spec_.cpu_level < trace::CpuLevel::kV3) return copy(instruction, position);
    const Form& form = *instruction.form;
    if (address_registers(form.references[0]) & (bit(RAX) | bit(RDX)))
        return writer_.leave(ExitKind::kUnsupported, instruction.pc);
    scratch_.take(RAX, position);
    scratch_.take(RDX, position);
    hot_.load_address(RDX, level_xcr0(spec_.cpu_level));
    constexpr std::uint8_t kPextEaxEaxEdx[] = {0xc4, 0xe2, 0x7a, 0xf5, 0xc2};
    constexpr std::uint8_t kPdepEaxEaxEdx[] = {0xc4, 0xe2, 0x7b, 0xf5, 0xc2};
    hot_.raw(kPextEaxEaxEdx, sizeof kPextEaxEaxEdx);
    hot_.raw(kPdepEaxEaxEdx, sizeof kPdepEaxEaxEdx);
    hot_.load_address(RDX, 0);
    copy(instruction, position);
    scratch_.make_way(instruction);
}

}  // namespace assay::native
