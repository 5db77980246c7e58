#include "framework/driver/native/emit/assembler.h"

#include <cpuid.h>

namespace assay::native {

bool forwards_relative_stores() {
    static const bool is_amd = [] {
        unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
        return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_AMD_ebx &&
               ecx == signature_AMD_ecx && edx == signature_AMD_edx;
    }();
    return is_amd;
}

}  // namespace assay::native
