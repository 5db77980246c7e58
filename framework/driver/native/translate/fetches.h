// Instrumentation of instruction fetches.
//
// Where a block begins, and where its code enters a line, a comparison with the line that was
// fetched last in the same set; see references.h for what filters leave out and why.
//
//   fetch_filter[line % sets]         a tag of the line
#pragma once

#include "framework/driver/native/translate/unit_writer.h"

namespace assay::native {

class Fetches : public UnitPart {
  public:
    using UnitPart::UnitPart;

    // Of a block's first instruction. Some ways into the block skip it.
    void at_entry(const PlannedBlock& block, Block& record);
    // Of an instruction that begins another line than the one before, or of a block's first.
    void check(Assembler& code, unsigned instr, unsigned position, bool flags_live);

  private:
    void record(std::uint64_t pc, std::uint32_t site, unsigned position);
};

}  // namespace assay::native
