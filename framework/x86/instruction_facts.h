// What an instruction is, whatever it is executed with: its name, the extension that it belongs to,
// the vectors that it computes with. For profilers that ask (assay/trace_parse.h).
#pragma once

#include "assay/trace_types.h"

#include <cstdint>
#include <span>

namespace assay::native {

// Of the instruction with that encoding. False if there is none. The names are Zydis's own, and
// valid for ever.
bool find_facts(std::span<const std::uint8_t> code, trace_instr_facts_t& facts);

// What x87 instructions do to the stack of their registers.

// How many registers an instruction with operands on the stack pushes; negative if it pops.
// `mnemonic`: a ZydisMnemonic.
int x87_pushes(std::uint16_t mnemonic);

}  // namespace assay::native
