// What can be captured of a program that QEMU runs, or of a trace of such a program.
#pragma once

#include "framework/isa/architecture.h"
#include "framework/trace/segment_layout.h"
#include "framework/trace/value_lists.h"

#include <string>

namespace assay::replay {

// Removes the capture of values if no instruction of this set has any. Returns what is missing
// then;
// "" if nothing is.
std::string missing_under_qemu(trace::Spec& spec, const trace::ValueLists& values,
                               const isa::Architecture& architecture);

}  // namespace assay::replay
