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

}  // namespace assay::native
