// Instrumentation of instruction fetches.
//
// Where a block begins, and where its code enters a line, a comparison with the line that was
// fetched last in the same set; see references.h for what filters leave out and why.
//
//   fetch_filter[line % sets]         a tag of the line
#pragma once

#include "framework/driver/native/translate/capture.h"

namespace assay::native {

class Fetches final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) { return spec.captures & trace::kCaptureFetches; }

    // Of a block's first instruction. Some ways into the block skip it.
    void at_entry(const PlannedBlock& block, Block& record) override;
    // Of those that begin another line than the one before.
    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override {
        check(hot_, item.instr, item.position, item.flags_live);
    }

  private:
    bool crosses_line(unsigned instr) const;
    void check(Assembler& code, unsigned instr, unsigned position, bool flags_live);
    void record(std::uint64_t pc, std::uint32_t site, unsigned position);
};

}  // namespace assay::native
