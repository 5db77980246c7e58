// The records of ChampSim's traces (its inc/trace_instruction.h, input_instr), as its tracer for
// Pin writes them. Some versions of ChampSim have one byte more.
#pragma once

#include "assay/trace_types.h"

#include <cstddef>
#include <cstdint>

namespace assay::tracing {

struct ChampsimRecord {
    static constexpr std::size_t kDestinations = 2, kSources = 4;

    std::uint64_t ip;
    std::uint8_t is_branch, branch_taken;
    // 0 means no register or no memory.
    std::uint8_t destination_registers[kDestinations];
    std::uint8_t source_registers[kSources];
    std::uint64_t destination_memory[kDestinations];
    std::uint64_t source_memory[kSources];
};
static_assert(sizeof(ChampsimRecord) == 64);

// ChampSim recognises the kind of a branch by these registers that it reads and writes (its
// inc/instruction.h). The numbers are Pin's, because ChampSim's tracer uses Pin.
inline constexpr std::uint8_t kStackPointer = 6, kFlagsRegister = 25, kInstructionPointer = 26;

// The part of an instruction's record that does not depend on its execution.
struct ChampsimForm {
    ChampsimRecord record;  // without addresses, and as not taken
    bool is_conditional;
    unsigned memory_operands;  // of one iteration if the instruction is repeated
};
ChampsimForm champsim_form(const trace_instr_t& instr);

}  // namespace assay::tracing
