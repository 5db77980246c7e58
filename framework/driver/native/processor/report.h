// The processor, for bug reports: `assay --version --verbose`.
#pragma once

#include "framework/driver/native/processor/shown_processor.h"

namespace assay::native {

// The features that the real processor has and the program is not shown, separated by spaces.
std::string hidden_features(const ShownProcessor& processor);
// Lines of a name, a colon and a value.
std::string processor_report(const ShownProcessor& processor);

}  // namespace assay::native
