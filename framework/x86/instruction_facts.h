// The facts of an instruction that do not depend on its execution: its name, its extension, the
// vectors that it computes with. For profilers that ask (assay/trace_parse.h).
#pragma once

#include "assay/trace_types.h"

#include <cstdint>
#include <span>

namespace assay::native {

// Describes the instruction with that encoding. False if there is no such instruction. Names are
// Zydis's own and stay valid for ever.
bool find_facts(std::span<const std::uint8_t> code, trace_instr_facts_t& facts);

// The number of registers that an x87 instruction pushes onto its stack; negative if it pops.
// `mnemonic` is a ZydisMnemonic.
int x87_pushes(std::uint16_t mnemonic);

}  // namespace assay::native
