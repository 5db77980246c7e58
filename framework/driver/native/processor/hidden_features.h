// With --cpu=host the program sees the processor itself, but for what the driver cannot give it:
// registers that it does not keep, and instructions that the decoder does not know. Programs ask
// CPUID and XGETBV for these, and do without them.
#pragma once

#include "framework/driver/native/processor/cpu_levels.h"

#include <span>

namespace assay::native {

enum class Hidden : std::uint8_t {
    kNothing,
    kState,         // and instructions that the decoder knows
    kInstructions,  // too, that it does not know: what is none for it may be one nevertheless
};
// Of this processor. With kNothing, cpuid and xgetbv need not be emulated.
Hidden hidden_features();
Hidden hidden_features(Cpuid processor, std::uint64_t xcr0);

// The processor's answer without what is hidden. How large an area of XSAVE is stays the
// processor's: it writes there what the program was not told of, too.
CpuidAnswer shown_cpuid(std::uint32_t leaf, std::uint32_t subleaf, Cpuid processor);
std::uint64_t shown_xcr0(std::uint64_t xcr0);

// What bytes may be that the decoder does not know, where there are Hidden::kInstructions.
const char* unknown_instruction(std::span<const std::uint8_t> code);

}  // namespace assay::native
