// With --cpu=host the program sees the processor itself, but for what the driver cannot give it:
// registers that it does not keep, and instructions that the decoder does not know. Programs ask
// CPUID and XGETBV for these, and do without them.
#pragma once

#include "framework/driver/native/processor/cpu_levels.h"
#include "framework/x86/instruction.h"

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

// True if the instructions of an extension are more than undefined ones.
bool has_extension(ProcessorExtension extension, trace::CpuLevel level);
bool has_extension(ProcessorExtension extension, Cpuid processor, std::uint64_t xcr0);
// As Intel calls it.
const char* name_of(ProcessorExtension extension);

// What bytes that the decoder does not know may be nevertheless; null if surely no instruction.
const char* newer_instruction(std::span<const std::uint8_t> code);
const char* newer_instruction(std::span<const std::uint8_t> code, Hidden hidden,
                              std::uint64_t xcr0);

}  // namespace assay::native
