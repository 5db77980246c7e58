// How an instruction encodes the operand that lies in memory: what is before ModRM, ModRM itself
// and what belongs to it.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/x86/instruction.h"

namespace assay::native {

// Bits 3 of registers in an operand, as REX has them: SDM volume 2, 2.2.1.2. Their places in VEX,
// EVEX and XOP are others, and they are inverted there.
enum Extension : std::uint8_t { kBaseExtension = 1, kIndexExtension = 2 };

unsigned extensions_of(const Instruction& instruction);

// The bytes before ModRM, at most 15, with those extensions and without an address size; with
// `keeps_segment` in their segment. Returns how many.
unsigned head_of(const Instruction& instruction, bool keeps_segment, unsigned extensions,
                 std::uint8_t* out);

inline constexpr std::uint8_t kAddressSizePrefix = 0x67;

// A legacy prefix.
bool has_prefix(const Instruction& instruction, std::uint8_t prefix);

// By REX.W of an instruction that is neither VEX nor EVEX.
bool has_wide_operand(const Instruction& instruction);

// SDM volume 2, 2.1.5. `address` is without the displacement; its index may be a vector register.
struct EncodedOperand {
    Address address;
    bool rip_relative = false;
    unsigned end = 0;  // of its bytes in the instruction
};

// False if ModRM names registers alone, or there is none.
bool has_encoded_operand(const Instruction& instruction);
EncodedOperand encoded_operand(const Instruction& instruction);

}  // namespace assay::native
