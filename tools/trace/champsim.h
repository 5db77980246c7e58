// The records of ChampSim's traces (its inc/trace_instruction.h, input_instr), in the form that its
// tracer for Pin writes: some versions of ChampSim have a byte more.
#pragma once

#include "assay/trace_types.h"

#include <cstddef>
#include <cstdint>

namespace assay::tracing {

struct ChampsimRecord {
    static constexpr std::size_t kDestinations = 2, kSources = 4;

    std::uint64_t ip;
    std::uint8_t is_branch, branch_taken;
    // Of registers and of memory 0 is none.
    std::uint8_t destination_registers[kDestinations];
    std::uint8_t source_registers[kSources];
    std::uint64_t destination_memory[kDestinations];
    std::uint64_t source_memory[kSources];
};
static_assert(sizeof(ChampsimRecord) == 64);

// By which registers a branch reads and writes, ChampSim tells what kind it is (its
// inc/instruction.h). The numbers are those of Pin, with which its tracer is made.
inline constexpr std::uint8_t kStackPointer = 6, kFlagsRegister = 25, kInstructionPointer = 26;

// What an instruction is for ChampSim, whatever it is executed with.
struct ChampsimForm {
    ChampsimRecord record;  // without memory, and not taken
    bool is_conditional;
    unsigned memory_operands;  // of an iteration, if it is repeated
};
ChampsimForm champsim_form(const trace_instr_t& instr);

}  // namespace assay::tracing
