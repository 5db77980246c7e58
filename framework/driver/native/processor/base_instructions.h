// rdfsbase, wrfsbase, rdgsbase and wrgsbase: of processors since 2012, if the kernel allows them.
#pragma once

#include <sys/auxv.h>

#include <cstdint>

namespace assay::native {

// Linux does since 5.9, unless it was started with nofsgsbase (arch/x86/include/uapi/asm/hwcap2.h).
// Elsewhere they are undefined instructions.
inline bool allows_base_instructions() {
    constexpr std::uint64_t kHwcap2FsGsBase = 2;
    return getauxval(AT_HWCAP2) & kHwcap2FsGsBase;
}

}  // namespace assay::native
