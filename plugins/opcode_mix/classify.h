// Which columns an instruction counts in.
//
// Also how many floating-point operations it does.
#pragma once

#include "plugins/opcode_mix/events.h"

#include <cstdint>
#include <optional>

namespace opcode_mix {

// How many floating-point operations an instruction is.

struct Flops {
    std::uint64_t count = 0;  // in an execution, of all elements, masked or not
    Event part = kFlX;        // of kFlops; says nothing where there are none
};

// As processors count them (FP_ARITH_INST_RETIRED, Intel SDM volume 3B, chapter "Performance
// monitoring events"): additions, subtractions, multiplications, divisions, roots, minima, maxima,
// and approximations of reciprocals and roots are one for each element, multiplications with an
// addition and dot products two. Beyond that: products of complex numbers 6 for each, 8 with an
// addition; of pairs in bfloat16, 4 for each sum. Of the x87 the same but minima, maxima and
// approximations, which it does not have.
Flops flops_of(const trace_instr_facts_t& facts);

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
