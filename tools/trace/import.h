// Converts traces of other programs to assay's format.
#pragma once

#include "tools/trace/trace.h"
#include "tools/trace/trace_maker.h"

#include <cstdint>
#include <string>

namespace assay::tracing {

struct Import {
    Format format;             // champsim, din, drmemtrace or lackey
    std::string file;          // may be compressed; for drmemtrace also a folder
    std::string output;        // the trace to write
    unsigned reference_bytes;  // for formats that do not contain sizes
};

// Throws Error with file and line or record, after removing the incomplete trace.
void import_trace(const Import& import);

// Pass each instruction of a file to `maker`, for each format. Throw Error with file and line or
// record.
void read_lackey(const Import& import, TraceMaker& maker);
// Reads the file twice.
void read_din(const Import& import, TraceMaker& maker);
void read_champsim(const Import& import, TraceMaker& maker);
void read_drmemtrace(const Import& import, TraceMaker& maker);

}  // namespace assay::tracing
