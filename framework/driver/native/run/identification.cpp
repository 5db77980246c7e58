#include "framework/driver/native/run/identification.h"

#include "framework/driver/native/processor/hidden_features.h"

#include <Zydis/Zydis.h>

namespace assay::native {

bool identify(Context& context, const Instruction& instruction, trace::CpuLevel level) {
    std::uint64_t(&gpr)[16] = context.gpr;
    const auto index = static_cast<std::uint32_t>(gpr[RCX]);
    if (instruction.form->mnemonic == ZYDIS_MNEMONIC_CPUID) {
        const auto leaf = static_cast<std::uint32_t>(gpr[RAX]);
        const CpuidAnswer answer = level == trace::CpuLevel::kHost
                                       ? shown_cpuid(leaf, index, processor_cpuid)
                                       : level_cpuid(level, leaf, index);
        gpr[RAX] = answer.eax;
        gpr[RBX] = answer.ebx;
        gpr[RCX] = answer.ecx;
        gpr[RDX] = answer.edx;
        return true;
    }
    // XCR0, and with an ecx of 1 those of its components that are in use: it may always say all
    // (SDM volume 1, 13.6).
    if (index > 1) return false;
    gpr[RAX] = shown_xcr0(level_xcr0(level));
    gpr[RDX] = 0;
    return true;
}

}  // namespace assay::native
