// Traces of other programs, made into one of assay's.
#pragma once

#include "tools/trace/trace.h"
#include "tools/trace/trace_maker.h"

#include <cstdint>
#include <string>

namespace assay::tracing {

struct Import {
    Format format;             // champsim, din or lackey
    std::string file;          // may be compressed by gzip or zstd
    std::string output;        // the trace
    unsigned reference_bytes;  // where the format does not have them
};

// Throws Error, which names file and line or record, and leaves no trace then.
void import_trace(const Import& import);

// Readers of the formats that can be imported: what each instruction of the file is. All throw
// Error, which names file and line or record.

void read_lackey(const Import& import, TraceMaker& maker);
// These read the file twice.
void read_din(const Import& import, TraceMaker& maker);
void read_champsim(const Import& import, TraceMaker& maker);

}  // namespace assay::tracing
