// Instrumentation of blocks: a record of each execution, for who wants to know their order.
#pragma once

#include "framework/driver/native/translate/capture.h"

namespace assay::native {

class BlockRecords final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) { return spec.captures & trace::kCaptureBlocks; }

    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override;
};

}  // namespace assay::native
