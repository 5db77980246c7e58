// How an instruction encodes its memory operand: the bytes before ModRM, ModRM itself, SIB and
// displacement.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/x86/instruction.h"

namespace assay::native {

// Bits 3 of registers in an operand, as in REX: SDM volume 2, 2.2.1.2. VEX, EVEX and XOP have them
// in other places, and inverted.
enum Extension : std::uint8_t { kBaseExtension = 1, kIndexExtension = 2 };

unsigned extensions_of(const Instruction& instruction);

// Writes the bytes before ModRM, at most 15, with these extensions and without an address-size
// prefix. Keeps a segment prefix if `keeps_segment`. Returns the number of bytes.
unsigned head_of(const Instruction& instruction, bool keeps_segment, unsigned extensions,
                 std::uint8_t* out);

inline constexpr std::uint8_t kAddressSizePrefix = 0x67;

// True if the instruction has this legacy prefix.
bool has_prefix(const Instruction& instruction, std::uint8_t prefix);

// True if an instruction that is neither VEX nor EVEX has REX.W.
bool has_wide_operand(const Instruction& instruction);

// SDM volume 2, 2.1.5. `address` has no displacement; its index may be a vector register.
struct EncodedOperand {
    Address address;
    bool rip_relative = false;
    unsigned end = 0;  // the end of its bytes in the instruction
};

// False if there is no ModRM, or if it names only registers.
bool has_encoded_operand(const Instruction& instruction);
EncodedOperand encoded_operand(const Instruction& instruction);

}  // namespace assay::native
