// Instrumentation of blocks: it increments each block's counter, and records each execution for
// profilers that need the order of blocks.
#pragma once

#include "framework/driver/native/translate/capture.h"

namespace assay::native {

class BlockIncrements final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) {
        return spec.captures & trace::kCaptureBlockCounts;
    }
    static constexpr bool kOnePlaceWillDo = true;

    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override;

  private:
    bool changes_context(const PlannedBlock& block) const;
    void count_in_context(const Item& item);
};

class BlockRecords final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) { return spec.captures & trace::kCaptureBlocks; }

    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override;
};

}  // namespace assay::native
