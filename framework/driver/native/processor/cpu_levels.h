// What CPUID, XGETBV and the auxiliary vector tell a program at each x86-64 level (--cpu=): the
// features of the level, and for all else constants, so that libc chooses the same functions and
// thresholds on every machine.
#pragma once

#include "framework/trace/cpu_level.h"

#include <string>

namespace assay::native {

struct CpuidAnswer {
    std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};
using Cpuid = CpuidAnswer (*)(std::uint32_t leaf, std::uint32_t subleaf);

// The processor's own answer.
CpuidAnswer processor_cpuid(std::uint32_t leaf, std::uint32_t subleaf);
// XCR0: the state components that the system has enabled (SDM volume 1, 13.3).
std::uint64_t processor_xcr0();
// True if rdfsbase, wrfsbase, rdgsbase and wrgsbase are more than undefined instructions: since
// Linux 5.9, unless it was started with nofsgsbase (arch/x86/include/uapi/asm/hwcap2.h).
bool allows_base_instructions();

// A level's, not kHost's. Where the processor keeps the AVX-512 components in an XSAVE area is the
// only thing that is taken from `processor`.
CpuidAnswer level_cpuid(trace::CpuLevel level, std::uint32_t leaf, std::uint32_t subleaf,
                        Cpuid processor = processor_cpuid);
// The state components that a program can use; with kHost all of the processor's.
std::uint64_t level_xcr0(trace::CpuLevel level);
// How large an area of XSAVE with these components is, in the standard format: at a level the same
// on every processor.
std::uint32_t state_area_bytes(trace::CpuLevel level, std::uint64_t components,
                               Cpuid processor = processor_cpuid);

// Why the level cannot be had on this processor; empty if it can.
std::string missing_for(trace::CpuLevel level, Cpuid processor, std::uint64_t xcr0);

// The entries of the auxiliary vector that tell of the processor.
struct HardwareCapabilities {
    std::uint64_t hwcap, hwcap2;
    std::uint64_t signal_stack;  // AT_MINSIGSTKSZ
};
HardwareCapabilities capabilities(trace::CpuLevel level);
// Whether the program is told of the vDSO. Its code is the kernel's, and so is what ld.so executes
// to look its functions up; without it libc makes system calls.
constexpr bool has_vdso(trace::CpuLevel level) {
    return level == trace::CpuLevel::kHost;
}

}  // namespace assay::native
