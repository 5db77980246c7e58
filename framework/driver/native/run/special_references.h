// What instructions refer to whose addresses only their execution tells.
#pragma once

#include "framework/driver/native/machine/context.h"

#include <optional>

namespace assay::native {

class Thread;

// The first access of an instruction with a Special: the address for each of its references.
struct FirstAccess {
    std::uint64_t address[2] = {0, 0};
};
// Before the instruction is executed; nothing if it will make no access.
std::optional<FirstAccess> first_access(const Context& context, const Instruction& instruction);
// Records the references of such an instruction, as it is about to be executed.
void record_special(Thread& thread, const Instruction& instruction, std::uint32_t first_site);

}  // namespace assay::native
