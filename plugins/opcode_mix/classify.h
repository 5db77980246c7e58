// Which columns an instruction counts in.
#pragma once

#include "plugins/opcode_mix/events.h"

#include <optional>

namespace opcode_mix {

// The part of a group (kDmov to kMisc, or kStk, which has no parts) that it belongs to. `flags`:
// TRACE_INSTR_*.
Event part_of(const trace_instr_facts_t& facts, std::uint32_t flags);
// The group of such a part.
Event group_of(Event part);

// kWs to kW512, and kSse to kAvx512; nothing of instructions without vector registers, or of other
// sets.
std::optional<Event> width_of(const trace_instr_facts_t& facts);
std::optional<Event> set_of(const trace_instr_facts_t& facts);

}  // namespace opcode_mix
