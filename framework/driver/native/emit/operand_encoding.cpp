#include "framework/driver/native/emit/operand_encoding.h"

#include "framework/driver/native/emit/assembler.h"

#include <cpuid.h>
#include <algorithm>

namespace assay::native {

namespace {

constexpr unsigned kExtensions = kBaseExtension | kIndexExtension;
constexpr unsigned kInvertedExtensions = 5;  // their place in VEX, EVEX and XOP

bool is_long_vector_prefix(unsigned byte) {
    constexpr unsigned kVex = 0xc4, kEvex = 0x62, kXop = 0x8f;  // 0x8f is also pop
    return byte == kVex || byte == kEvex || byte == kXop;
}

bool is_segment_prefix(unsigned byte) {
    return (byte & 0xe7) == 0x26 || byte == 0x64 || byte == 0x65;
}

bool is_legacy_prefix(unsigned byte) {
    return is_segment_prefix(byte) || byte == kAddressSizePrefix || byte == 0x66 || byte == 0xf0 ||
           byte == 0xf2 || byte == 0xf3;
}

// The position of REX, VEX, EVEX, XOP or the opcode.
unsigned behind_legacy_prefixes(const Instruction& instruction) {
    unsigned at = 0;
    while (at < instruction.form->opcode_offset && is_legacy_prefix(instruction.bytes[at])) ++at;
    return at;
}

}  // namespace

unsigned extensions_of(const Instruction& instruction) {
    const unsigned at = behind_legacy_prefixes(instruction);
    const unsigned first = instruction.bytes[at];
    if (at >= instruction.form->modrm_offset) return 0;
    if ((first & 0xf0) == 0x40) return first & kExtensions;
    if (is_long_vector_prefix(first) && at + 1U < instruction.form->modrm_offset)
        return ~unsigned{instruction.bytes[at + 1]} >> kInvertedExtensions & kExtensions;
    return 0;
}

// Prefixes: SDM volume 2, 2.1.1 and 2.2.1; VEX: 2.3.5; EVEX: 2.7.1; XOP: AMD64 Architecture
// Programmer's Manual volume 6, 1.1.2. The extensions have no meaning for a RIP-relative operand.
unsigned head_of(const Instruction& instruction, bool keeps_segment, unsigned extensions,
                 std::uint8_t* out) {
    const unsigned end = instruction.form->modrm_offset;
    unsigned count = 0, at = 0;
    for (; at < end && is_legacy_prefix(instruction.bytes[at]); ++at) {
        const unsigned byte = instruction.bytes[at];
        if (byte == kAddressSizePrefix || (is_segment_prefix(byte) && !keeps_segment)) continue;
        out[count++] = static_cast<std::uint8_t>(byte);
    }
    const unsigned first = instruction.bytes[at];
    if ((first & 0xf0) == 0x40) {
        out[count++] = static_cast<std::uint8_t>((first & ~kExtensions) | extensions);
        ++at;
    } else if (is_long_vector_prefix(first) && at + 1 < end) {
        out[count++] = static_cast<std::uint8_t>(first);
        out[count++] = static_cast<std::uint8_t>(
            (instruction.bytes[at + 1] | kExtensions << kInvertedExtensions) &
            ~(extensions << kInvertedExtensions));
        at += 2;
    }
    while (at < end) out[count++] = instruction.bytes[at++];
    return count;
}

bool has_prefix(const Instruction& instruction, std::uint8_t prefix) {
    const std::uint8_t* const end = instruction.bytes + behind_legacy_prefixes(instruction);
    return std::find(instruction.bytes, end, prefix) != end;
}

bool has_wide_operand(const Instruction& instruction) {
    return (instruction.bytes[behind_legacy_prefixes(instruction)] & 0xf8) == 0x48;
}

bool has_encoded_operand(const Instruction& instruction) {
    const unsigned at = instruction.form->modrm_offset;
    return at != 0 && instruction.bytes[at] < 0xc0;
}

EncodedOperand encoded_operand(const Instruction& instruction) {
    constexpr unsigned kSib = 4, kNone = 5;
    const Form& form = *instruction.form;
    const unsigned modrm = instruction.bytes[form.modrm_offset],
                   sib = instruction.bytes[form.modrm_offset + 1];
    const unsigned extensions = extensions_of(instruction);
    const unsigned base_extension = (extensions & kBaseExtension) != 0 ? 8 : 0;
    const bool has_sib = (modrm & 7) == kSib;
    EncodedOperand operand;
    operand.end = form.modrm_offset + 1U + (has_sib ? 1 : 0) + form.disp_bytes;
    operand.address = Address{kNoGpr, kNoGpr, 1, 0};
    const unsigned base = has_sib ? sib & 7 : modrm & 7;
    const bool without_displacement = modrm >> 6 == 0;
    operand.rip_relative = without_displacement && !has_sib && base == kNone;
    if (!without_displacement || base != kNone)
        operand.address.base = static_cast<std::uint8_t>(base | base_extension);
    if (!has_sib) return operand;
    const unsigned index = (sib >> 3 & 7) | ((extensions & kIndexExtension) != 0 ? 8U : 0U);
    operand.address.scale = static_cast<std::uint8_t>(1U << (sib >> 6));
    if (index != RSP || form.special == Special::kGather)
        operand.address.index = static_cast<std::uint8_t>(index);
    return operand;
}

bool forwards_relative_stores() {
    static const bool is_amd = [] {
        unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
        return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_AMD_ebx &&
               ecx == signature_AMD_ecx && edx == signature_AMD_edx;
    }();
    return is_amd;
}

}  // namespace assay::native
