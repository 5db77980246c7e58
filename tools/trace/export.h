// Traces in the formats of other programs.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "tools/output/sink.h"
#include "tools/trace/trace.h"

#include <string>

namespace assay::tracing {

// Of one thread, but memref: of all, or of the one that is asked for. Returns why something is
// missing; "" if nothing is. `format` is one of those that is_export() names.
std::string export_image(Format format, const replay::ImageTrace& image, const Region& region,
                         Sink& sink);

}  // namespace assay::tracing
