// What instructions refer to whose addresses only their execution tells.
#pragma once

#include "framework/driver/native/context.h"

#include <optional>

namespace assay::native {

// The first access of an instruction with a Special: the address for each of its references.
struct FirstAccess {
    std::uint64_t address[2] = {0, 0};
};
// Before the instruction is executed; nothing if it will make no access.
std::optional<FirstAccess> first_access(const Context& context, const Instruction& instruction);

}  // namespace assay::native
