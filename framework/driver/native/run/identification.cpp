#include "framework/driver/native/run/identification.h"

#include <Zydis/Zydis.h>

namespace assay::native {

bool identify(Context& context, const Instruction& instruction, const ShownProcessor& processor) {
    std::uint64_t(&gpr)[16] = context.gpr;
    const auto index = static_cast<std::uint32_t>(gpr[RCX]);
    if (instruction.form->mnemonic == ZYDIS_MNEMONIC_CPUID) {
        const auto leaf = static_cast<std::uint32_t>(gpr[RAX]);
        const CpuidAnswer answer = processor.cpuid(leaf, index);
        gpr[RAX] = answer.eax;
        gpr[RBX] = answer.ebx;
        gpr[RCX] = answer.ecx;
        gpr[RDX] = answer.edx;
        return true;
    }
    // XCR0, and with an ecx of 1 those of its components that are in use: it may always say all
    // (SDM volume 1, 13.6).
    if (index > (processor.has_xgetbv_of_used() ? 1U : 0U)) return false;
    gpr[RAX] = processor.xcr0();
    gpr[RDX] = 0;
    return true;
}

}  // namespace assay::native
