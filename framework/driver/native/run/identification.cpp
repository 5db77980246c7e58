#include "framework/driver/native/run/identification.h"

#include "framework/driver/native/process/process.h"
#include "framework/driver/native/processor/hidden_features.h"

#include <Zydis/Zydis.h>

namespace assay::native {

void identify(Thread& thread, const Instruction& instruction) {
    std::uint64_t(&gpr)[16] = thread.context->gpr;
    const trace::CpuLevel level = thread.process.trace.spec().cpu_level;
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
        return;
    }
    // XCR0, and with an ecx of 1 those of its components that are in use: it may always say all
    // (SDM volume 1, 13.6).
    if (index > 1) thread.refuse("xgetbv with ecx " + std::to_string(index) + ": no such register");
    gpr[RAX] = shown_xcr0(level_xcr0(level));
    gpr[RDX] = 0;
}

}  // namespace assay::native
