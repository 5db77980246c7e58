// Assigns instructions to columns, counts their floating-point operations, and writes the summary.
#pragma once

#include "plugins/opcode_mix/events.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace opcode_mix {

// The floating-point operations of an instruction.
struct Flops {
    std::uint64_t count = 0;  // in one execution, for all elements, masked or not
    Event part = kFlX;        // one of kFlops; meaningless if count is 0
};

// Counts as processors do (FP_ARITH_INST_RETIRED, Intel SDM volume 3B, chapter "Performance
// monitoring events"), for each element:
//   - 1 for additions, subtractions, multiplications, divisions, roots, minima, maxima, and
//     approximations of reciprocals and roots;
//   - 2 for multiplications with an addition, and for dot products.
// Also counts products of complex numbers, 6 each and 8 with an addition, and dot products of
// bfloat16 pairs, 4 for each sum. x87 has no minima, maxima and approximations.
Flops flops_of(const trace_instr_facts_t& facts);

// The part of a group to which the instruction belongs: kDmov to kMisc, or kStk, which has no
// parts. `flags` are TRACE_INSTR_*.
Event part_of(const trace_instr_facts_t& facts, std::uint32_t flags);
Event group_of(Event part);

// width_of() returns kWs to kW512, set_of() kSse to kAvx512. No value for instructions without
// vector registers, or of other sets.
std::optional<Event> width_of(const trace_instr_facts_t& facts);
std::optional<Event> set_of(const trace_instr_facts_t& facts);

// The summary at the end of a run: groups, and the most frequent opcodes.

struct Opcode {
    std::string_view mnemonic;
    std::uint64_t executions;
};

// `totals` are by event. `opcodes` are those to show, in descending order.
std::string summarise(std::span<const std::uint64_t> totals, const std::vector<Opcode>& opcodes);
// For example "mov 31.2%, add 8.1%", as shares of `instructions`.
std::string in_one_line(const std::vector<Opcode>& opcodes, std::uint64_t instructions);

}  // namespace opcode_mix
