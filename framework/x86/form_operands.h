// The operands of an instruction's form: registers, and references to memory.
#pragma once

#include "framework/x86/instruction.h"

#include <Zydis/Zydis.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace assay::native {

// The bytes under which the decoder remembers an instruction's form: those up to the SIB byte, or
// up to the last byte before it that the instruction has.
struct FormKey {
    std::uint64_t words[2] = {0, 0};  // the bytes; the last byte is their number

    friend bool operator==(const FormKey&, const FormKey&) = default;
    std::uint64_t hash() const {
        const std::uint64_t mixed =
            (words[0] ^ (words[1] * 0x9e3779b97f4a7c15ULL)) * 0xff51afd7ed558ccdULL;
        return mixed ^ (mixed >> 32);
    }
};

// The key of the instruction at `code`. No value if these bytes do not determine the form: too many
// prefixes, a prefix after REX (which makes REX void), too few bytes, 3DNow! (whose opcode follows
// the operands), XOP, or an immediate that names a register.
std::optional<FormKey> form_key(std::span<const std::uint8_t> code);

// Sets the members of a form that depend on operands: Form::reads to kills, references, destination
// and sources. Marks the form as unsupported if the driver cannot handle an operand. Encoding,
// flow, special and processor_use must be set already.
void note_operands(Form& form, const ZydisDecodedInstruction& zydis,
                   const ZydisDecodedOperand* operands);

// The general-purpose register that contains `reg`, kRip, or kNoGpr.
std::uint8_t gpr_of(ZydisRegister reg);

bool is_string_instruction(const ZydisDecodedInstruction& zydis);

}  // namespace assay::native
