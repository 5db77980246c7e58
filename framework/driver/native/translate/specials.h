// Instrumentation of what only the driver can see: instructions whose references their execution
// tells, such as those of repeated strings, gathers and masked moves. It is entered before them.
#pragma once

#include "framework/driver/native/translate/capture.h"

namespace assay::native {

class Specials final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) {
        return spec.captures &
               (trace::kCaptureReferences | trace::kCaptureRepeats | trace::kCapturePredictions);
    }
    // True if the driver makes the instruction's references.
    static bool takes(const trace::Spec& spec, const Form& form);

    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override;
};

}  // namespace assay::native
