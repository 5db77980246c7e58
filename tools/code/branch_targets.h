// Where instructions jump to and what they call.
#pragma once

#include "framework/x86/decoder.h"
#include "tools/code/object_code.h"

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

// Of a direct jump or call: the link-time address that it leads to. 0: it is none.
std::uint64_t branch_target(const native::Instruction& instruction);

// What stands behind an instruction that leads to each of the sorted addresses: " <name>" or
// " <name+0x12>"; "" if no symbol is known.
std::vector<std::string> target_names(ObjectCode& code, const std::vector<std::uint64_t>& targets);

}  // namespace assay
