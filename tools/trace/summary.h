// What a trace has, process image by process image.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "tools/output/sink.h"
#include "tools/trace/trace.h"

namespace assay::tracing {

// Before the first one.
void write_summary_head(const Options& options, Sink& sink);
// Reads all records of the image, to count them.
void write_summary(const Options& options, const replay::ImageTrace& image,
                   const recording::RecordedImage& recorded, Sink& sink);

}  // namespace assay::tracing
