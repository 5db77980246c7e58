// What x87 instructions do to the stack of their registers.
#pragma once

#include <cstdint>

namespace assay::native {

// How many registers an instruction with operands on the stack pushes; negative if it pops.
// `mnemonic`: a ZydisMnemonic.
int x87_pushes(std::uint16_t mnemonic);

}  // namespace assay::native
