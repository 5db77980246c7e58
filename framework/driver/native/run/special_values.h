// Values of instructions whose references have to be computed when they run. The driver is entered
// before them and behind them; what cannot be read, the execution does not have. And values of any
// instruction that translated code cannot read.
#pragma once

#include "framework/driver/native/trace/thread_trace.h"

namespace assay::native {

// Of one thread.
class SpecialValues {
  public:
    SpecialValues(const TraceTables& tables, ThreadTrace& trace, Context& context)
        : tables_(tables), trace_(trace), context_(context) {}

    // Reads those of before the instruction, and records all behind it.
    void read(const Instruction& instruction);
    void record(const Instruction& instruction, std::uint32_t first_site);
    // Those of any instruction that only the saved state has, before it or behind it, for
    // translated code to record.
    void read_saved(const Instruction& instruction, bool before);

  private:
    const TraceTables& tables_;
    ThreadTrace& trace_;
    Context& context_;
};

}  // namespace assay::native
