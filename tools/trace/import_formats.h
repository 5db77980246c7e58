// Readers of the formats that can be imported: what each instruction of the file is. All throw
// Error, which names file and line or record.
#pragma once

#include "tools/trace/import.h"
#include "tools/trace/trace_maker.h"

namespace assay::tracing {

void read_lackey(const Import& import, TraceMaker& maker);
// These read the file twice.
void read_din(const Import& import, TraceMaker& maker);
void read_champsim(const Import& import, TraceMaker& maker);

}  // namespace assay::tracing
