// Values of instructions whose references have to be computed when they run. The driver is entered
// before them and behind them; what cannot be read, the execution does not have. And values of any
// instruction that translated code cannot read.
#pragma once

#include "framework/x86/instruction.h"

#include <cstdint>

namespace assay::native {

class Thread;

// Reads those of before the instruction, and records all behind it.
void read_special_values(Thread& thread, const Instruction& instruction);
void record_special_values(Thread& thread, const Instruction& instruction,
                           std::uint32_t first_site);
// Those of any instruction that only the saved state has, before it or behind it, for translated
// code to record.
void read_saved_values(Thread& thread, const Instruction& instruction, bool before);

}  // namespace assay::native
