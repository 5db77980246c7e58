// Traces of other programs, made into one of assay's.
#pragma once

#include "tools/trace/options.h"

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

}  // namespace assay::tracing
