#include "framework/driver/native/translate/copies.h"

#include "framework/driver/native/emit/operand_encoding.h"
#include "framework/driver/native/processor/shown_processor.h"

#include <algorithm>

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

void Copies::copy_head(const Instruction& instruction, bool keeps_segment, unsigned extensions) {
    std::uint8_t head[16];
    hot_.raw(head, head_of(instruction, keeps_segment, extensions, head));
}

void Copies::copy_rest(const Instruction& instruction, unsigned from) {
    hot_.raw(instruction.bytes + from, instruction.form->length - from);
}

// For a target below 2 GiB: [disp32] by a SIB byte without base and index.
void Copies::copy_absolute(const Instruction& instruction) {
    const Form& form = *instruction.form;
    copy_head(instruction, true);
    hot_.u8((instruction.bytes[form.modrm_offset] & 0xf8) | 4);
    hot_.u8(0x25);
    hot_.u32(static_cast<std::uint32_t>(instruction.rip_address()));
    copy_rest(instruction, form.disp_offset + 4U);
}

// For a target out of reach: a borrowed register gets its address.
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

// Turns an indirect jump or call, FF /4 or FF /2, into mov rcx with the same operand: 8B /1.
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

// An instruction that this processor does not have faults, with its own address and registers.
void Copies::copy_undefined(unsigned position) {
    constexpr std::uint8_t kUd2[] = {0x0f, 0x0b};
    writer_.note_point(position);
    hot_.raw(kUd2, sizeof kUd2);
}

// These instructions save and restore the components of edx:eax that the real XCR0 enables. glibc
// asks for all components that it knows (sysdeps/x86/cpu-features-offsets.sym, STATE_SAVE_MASK),
// but its area has room only for those that CPUID shows. edx:eax is therefore limited to these. An
// operand that uses rax or rdx first gets another register.
void Copies::copy_state_access(const Instruction& instruction, unsigned position) {
    const auto shown = static_cast<std::int32_t>(shown_processor().xcr0());
    static_assert(kKeptState >> 32 == 0);
    const bool moves_address =
        (address_registers(instruction.form->references[0]) & (bit(RAX) | bit(RDX))) != 0;
    const unsigned address = moves_address ? load_operand_address(instruction, position) : kNoGpr;
    scratch_.take(RAX, position);
    scratch_.take(RDX, position);
    const bool flags_live = plan_.flags_live[position] != 0;
    const unsigned mask = flags_live ? RDX : RAX;  // rax keeps the flags
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

namespace {

// A register that the instruction overwrites without reading it, so its value may be destroyed.
// kNoGpr if there is no such register.
unsigned overwritten_register(const Form& form) {
    constexpr GprMask kLow = bit(RAX) | bit(RCX) | bit(RDX) | bit(RBX) | bit(RSI) | bit(RDI);
    const auto found = static_cast<GprMask>(form.kills & ~form.reads & kLow);
    return found == 0 ? kNoGpr : static_cast<unsigned>(__builtin_ctz(found));
}

const MemoryReference* reference_in_segment(const Form& form) {
    return std::find_if(
        form.references, form.references + form.reference_count,
        [](const MemoryReference& reference) { return reference.segment != Segment::kFlat; });
}

// EVEX scales short displacements (SDM volume 2, 2.7.5).
bool is_evex(const Instruction& instruction) {
    constexpr std::uint8_t kEvex = 0x62;
    const std::uint8_t* const end = instruction.bytes + instruction.form->modrm_offset;
    return instruction.form->modrm_offset >= 5 && end[-5] == kEvex;
}

}  // namespace

void Copies::copy_in_segment(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    if (has_encoded_operand(instruction)) {
        const EncodedOperand operand = encoded_operand(instruction);
        if (operand.rip_relative || has_prefix(instruction, kAddressSizePrefix))
            copy_by_address(instruction, position);
        else
            copy_with_base(instruction, position);
    } else if (form.special == Special::kTranslate) {
        copy_xlat(instruction, position);
    } else if (form.disp_bytes != 0) {
        copy_accumulator_move(instruction, position);
    } else {
        copy_displaced(instruction, position);
    }
}

// A register that can hold the address of the instruction's operand. Gives the trace cursor back if
// there are too few others.
unsigned Copies::acquire_for_address(const Form& form, unsigned position, GprMask others) {
    const auto usable = static_cast<GprMask>(registers_for_address(form) & ~others);
    const std::uint8_t cursor = scratch_.cached_cursor();
    if (cursor != kNoGpr && (usable & ~bit(cursor)) == 0) scratch_.give_cursor_back();
    return scratch_.acquire(static_cast<GprMask>(~usable), position);
}

// [base + index * scale + displacement] becomes [base + register + displacement]. The register
// holds the segment's base plus the scaled index. The vector index of a gather stays.
void Copies::copy_with_base(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    const EncodedOperand operand = encoded_operand(instruction);
    const bool gathers = form.special == Special::kGather;
    Address address = operand.address;
    address.disp = static_cast<std::int32_t>(instruction.displacement());
    unsigned reg = overwritten_register(form);
    if (reg == kNoGpr) reg = acquire_for_address(form, position, 0);
    const auto segment = static_cast<std::uint8_t>(reg);
    hot_.load_context(reg, segment_base_offset(form.segment));
    if (gathers) {
        if (address.base != kNoGpr) hot_.lea(reg, Address{address.base, segment, 1, 0});
        address.base = segment;
    } else {
        if (address.index != kNoGpr)
            hot_.lea(reg, Address{segment, address.index, address.scale, 0});
        address.scale = 1;
        address.index = address.base == kNoGpr ? kNoGpr : segment;
        if (address.base == kNoGpr) address.base = segment;
    }
    writer_.note_point(position);
    const unsigned extensions =
        (address.base >= 8 ? unsigned{kBaseExtension} : 0U) |
        (address.index != kNoGpr && address.index >= 8 ? unsigned{kIndexExtension} : 0U);
    copy_head(instruction, false, extensions);
    hot_.operand(instruction.bytes[form.modrm_offset] >> 3 & 7, address, is_evex(instruction));
    copy_rest(instruction, operand.end);
}

// An operand relative to rip, or with a 32-bit address, gets its own register.
void Copies::copy_by_address(const Instruction& instruction, unsigned position) {
    const unsigned address = load_operand_address(instruction, position);
    writer_.note_point(position);
    copy_at(instruction, address);
}

// Loads the address of ModRM's operand, with its segment's base, into a borrowed register.
unsigned Copies::load_operand_address(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    const EncodedOperand operand = encoded_operand(instruction);
    const unsigned a = acquire_for_address(form, position, 0);
    const bool narrow = has_prefix(instruction, kAddressSizePrefix);
    const MemoryReference* const reference = reference_in_segment(form);
    const int bias = reference != form.references + form.reference_count ? reference->bias : 0;
    if (operand.rip_relative) {
        const std::uint64_t address = instruction.rip_address();
        hot_.load_address(a, narrow ? static_cast<std::uint32_t>(address) : address);
    } else {
        Address address = operand.address;
        address.disp = static_cast<std::int32_t>(instruction.displacement() + bias);
        hot_.lea(a, address, !narrow);
    }
    if (form.segment == Segment::kFlat) return a;
    const unsigned b = acquire_for_address(form, position, bit(a));
    hot_.load_context(b, segment_base_offset(form.segment));
    hot_.lea(a, Address{static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), 1, 0});
    return a;
}

// Copies the instruction with [address] as its operand.
void Copies::copy_at(const Instruction& instruction, unsigned address) {
    copy_head(instruction, false);
    hot_.u8((instruction.bytes[instruction.form->modrm_offset] & 0x38U) | address);
    copy_rest(instruction, encoded_operand(instruction).end);
}

// xlat: mov al, [rbx + al]. SDM volume 2, XLAT.
void Copies::copy_xlat(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    const unsigned a = acquire_for_address(form, position, 0);
    const unsigned b = acquire_for_address(form, position, bit(a));
    const auto sum = static_cast<std::uint8_t>(a);
    hot_.u8(0x0f);  // movzx a, al
    hot_.u8(0xb6);
    hot_.u8(static_cast<std::uint8_t>(0xc0 | a << 3));
    hot_.lea(a, Address{RBX, sum, 1, 0}, !has_prefix(instruction, kAddressSizePrefix));
    hot_.load_context(b, segment_base_offset(form.segment));
    writer_.note_point(position);
    hot_.with_memory(kLoadByte, RAX, Address{sum, static_cast<std::uint8_t>(b), 1, 0}, false);
}

// mov between the accumulator and an absolute address, A0 to A3, becomes one with ModRM: 8A, 8B, 88
// or 89. SDM volume 2, MOV.
void Copies::copy_accumulator_move(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    const unsigned opcode = instruction.bytes[form.opcode_offset];
    const unsigned a = acquire_for_address(form, position, 0);
    const unsigned b = acquire_for_address(form, position, bit(a));
    hot_.load_address(a, static_cast<std::uint64_t>(instruction.displacement()));
    hot_.load_context(b, segment_base_offset(form.segment));
    writer_.note_point(position);
    if (has_prefix(instruction, 0x66)) hot_.u8(0x66);
    const bool wide = form.references[0].bytes == 8;
    hot_.with_memory(((opcode & 2) != 0 ? kStoreByte : kLoadByte) | (opcode & 1), RAX,
                     Address{static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), 1, 0},
                     wide);
}

// String instructions, masked moves and clzero have their address in a fixed register. The base is
// added to it before and subtracted after the instruction, without changing flags.
void Copies::copy_displaced(const Instruction& instruction, unsigned position) {
    const Form& form = *instruction.form;
    const std::uint8_t reg = reference_in_segment(form)->base;
    const unsigned base = acquire_for_address(form, position, 0);
    const auto index = static_cast<std::uint8_t>(base);
    hot_.load_context(base, segment_base_offset(form.segment));
    hot_.lea(reg, Address{reg, index, 1, 0});
    hot_.complement(base);  // -base - 1
    writer_.note_point(position);
    writer_.output.points.back().displaced_by = form.segment;
    writer_.output.points.back().displaced = reg & 7U;
    for (unsigned i = 0; i < form.length; ++i)
        if (instruction.bytes[i] != (form.segment == Segment::kFs ? 0x64 : 0x65) ||
            i >= form.opcode_offset)
            hot_.u8(instruction.bytes[i]);
    hot_.lea(reg, Address{reg, index, 1, 1});
}

// rdfsbase, wrfsbase and similar instructions.
void Copies::copy_base_access(const Instruction& instruction) {
    const Form& form = *instruction.form;
    constexpr unsigned kLoad = 0x8b, kStore = 0x89, kStoreImmediate = 0xc7;
    const unsigned modrm = instruction.bytes[form.modrm_offset];
    const unsigned reg =
        (modrm & 7) | ((extensions_of(instruction) & kBaseExtension) != 0 ? 8U : 0U);
    const std::size_t base = segment_base_offset(form.segment);
    const bool wide = has_wide_operand(instruction);
    hot_.with_context(form.reads_base ? kLoad : kStore, reg, base, wide);
    if (form.reads_base || wide) return;
    hot_.with_context(kStoreImmediate, 0, base + 4, false);
    hot_.u32(0);
}

// Loads the operand of an indirect jump or call in a segment into rcx. Until then, the program's
// rax and rcx wait like those of borrowed registers.
void Copies::load_branch_target_in_segment(const Instruction& last, unsigned position) {
    const EncodedOperand operand = encoded_operand(last);
    const bool narrow = has_prefix(last, kAddressSizePrefix);
    hot_.store_context(Scratch::slot(RAX), RAX);
    hot_.store_context(Scratch::slot(RCX), RCX);
    writer_.note_point(position);
    writer_.output.points.back().saved |= bit(RAX) | bit(RCX);
    if (operand.rip_relative) {
        const std::uint64_t target = last.rip_address();
        hot_.load_address(RCX, narrow ? static_cast<std::uint32_t>(target) : target);
    } else {
        Address address = operand.address;
        address.disp = static_cast<std::int32_t>(last.displacement());
        hot_.lea(RCX, address, !narrow);
    }
    hot_.load_context(RAX, segment_base_offset(last.form->segment));
    hot_.with_memory(kLoad, RCX, Address{RCX, RAX, 1, 0});
    hot_.load_context(RAX, Scratch::slot(RAX));
    writer_.note_point(position);
}

}  // namespace assay::native
