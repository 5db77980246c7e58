#include "framework/x86/instruction.h"

#include <algorithm>
#include <cstring>

namespace assay::native {

std::int64_t Instruction::displacement() const {
    const std::uint8_t* at = bytes + form->disp_offset;
    if (form->disp_bytes == 1)
        return static_cast<std::int64_t>(static_cast<std::int8_t>(*at)) * form->disp_scale;
    if (form->disp_bytes == 4) {
        std::int32_t value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
    if (form->disp_bytes == 8) {  // mov with an absolute 64-bit address
        std::int64_t value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
    return 0;
}

std::int64_t Instruction::immediate() const {
    const std::uint8_t* at = bytes + form->imm_offset;
    std::int64_t value = 0;
    switch (form->imm_bytes) {
        case 1:
            return static_cast<std::int8_t>(*at);
        case 2: {
            std::int16_t word;
            std::memcpy(&word, at, 2);
            return word;
        }
        case 4: {
            std::int32_t word;
            std::memcpy(&word, at, 4);
            return word;
        }
        case 8:
            std::memcpy(&value, at, 8);
            return value;
        default:
            return 0;
    }
}

std::uint16_t Instruction::flags_killed() const {
    // SDM, SHL and others: a masked count of 0 leaves the flags unchanged.
    if (form->shift_by_immediate && (immediate() & 0x3f) % 32 == 0) return 0;
    return form->flags_killed;
}

std::optional<std::int64_t> Instruction::stack_change() const {
    if (!(form->writes & bit(RSP))) return 0;
    const std::uint8_t rex =
        form->opcode_offset > 0 && (bytes[form->opcode_offset - 1] & 0xf0) == 0x40
            ? bytes[form->opcode_offset - 1]
            : 0;
    const std::uint8_t modrm = bytes[form->modrm_offset];
    const unsigned extension = modrm >> 3 & 7;
    const bool on_rsp = (modrm & 0xc7) == (0xc0 | RSP) && (rex & 9) == 8;
    switch (form->opcode) {
        case 0x81:
        case 0x83:  // add and sub rsp, constant
            if (!on_rsp || (extension != 0 && extension != 5)) return std::nullopt;
            return extension == 0 ? immediate() : -immediate();
        case 0x8d:  // lea rsp, [rsp + constant]
            if (form->opcode_offset != 1 || rex != 0x48 || (modrm & 0x3f) != 0x24 ||
                bytes[form->modrm_offset + 1] != 0x24)
                return std::nullopt;
            return displacement();
        default:
            break;
    }
    const bool push = form->opcode >= 0x50 && form->opcode <= 0x57;
    const bool push_constant = form->opcode == 0x68 || form->opcode == 0x6a;
    const bool pop = form->opcode >= 0x58 && form->opcode <= 0x5f;
    const bool pop_rsp = form->opcode == 0x5c && !(rex & 1);
    if (push || push_constant) return -std::int64_t{form->references[0].bytes};
    if (pop && !pop_rsp) return form->references[0].bytes;
    return std::nullopt;
}

bool Instruction::sets_stack() const {
    if (!(form->writes & bit(RSP)) || form->flow != Flow::kNone) return false;
    switch (form->opcode) {
        case 0x8b:  // mov rsp, memory
            if (form->reference_count != 0) return true;
            [[fallthrough]];
        case 0x89:
        case 0x8d:  // lea
            return !(form->reads & (bit(RSP) | bit(RBP)));
        case 0x5c:  // pop rsp; pop r12 has the same opcode
            return (form->kills & ~bit(RSP)) == 0;
        case 0x87:
        case 0x94:  // xchg
            return true;
        default:
            return false;
    }
}

namespace {

// For trace_parser_stored_bytes.
std::uint8_t stored_bytes(const Form& form) {
    constexpr unsigned kMost = 255;
    for (unsigned i = 0; i < form.reference_count; ++i)
        if (form.references[i].kind != TRACE_SITE_READ)
            return static_cast<std::uint8_t>(std::min<unsigned>(form.references[i].bytes, kMost));
    return 0;
}

}  // namespace

trace_instr_t row_of(const Instruction& instruction) {
    trace_instr_t row{};
    row.pc = instruction.pc;
    row.length = instruction.form->length;
    row.flags = instruction.form->trace_flags;
    row.opcode = instruction.form->opcode;
    std::memcpy(row.bytes, instruction.bytes, sizeof row.bytes);
    row.reserved = stored_bytes(*instruction.form);
    return row;
}

}  // namespace assay::native
