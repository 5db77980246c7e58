// The operands of an instruction's form: registers, and references to memory.
#pragma once

#include "framework/x86/instruction.h"

#include <Zydis/Zydis.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace assay::native {

// The bytes by which the decoder remembers an instruction's form: those up to the SIB byte, or what
// comes last before it.

struct FormKey {
    std::uint64_t words[2] = {0, 0};  // the bytes, and their number in the last one

    friend bool operator==(const FormKey&, const FormKey&) = default;
    std::uint64_t hash() const {
        const std::uint64_t mixed =
            (words[0] ^ (words[1] * 0x9e3779b97f4a7c15ULL)) * 0xff51afd7ed558ccdULL;
        return mixed ^ (mixed >> 32);
    }
};

// Of the instruction at `code`. None if these bytes cannot serve: too many prefixes, one behind REX
// (which makes REX void), too few bytes, 3DNow! (whose opcode is behind), XOP, or an
// immediate that names a register.
std::optional<FormKey> form_key(std::span<const std::uint8_t> code);

// The part of make_form() that goes by operands: Form::reads to kills, references, destination,
// sources, and whether the driver can do with their segments. The form's encoding, flow, special
// and processor_use are known by then.
void note_operands(Form& form, const ZydisDecodedInstruction& zydis,
                   const ZydisDecodedOperand* operands);

// Of which general-purpose register it is all or a part, kRip, or kNoGpr.
std::uint8_t gpr_of(ZydisRegister reg);

bool is_string_instruction(const ZydisDecodedInstruction& zydis);

}  // namespace assay::native
