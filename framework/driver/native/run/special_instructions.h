// Instructions that the program means for assay, and those that identify the processor.
#pragma once

#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/processor/shown_processor.h"
#include "framework/driver/native/trace/regions.h"
#include "framework/driver/native/trace/thread_trace.h"

namespace assay::native {

// cpuid and xgetbv as the program sees them.

// Answers as the shown processor. False if that has no register for xgetbv's ecx.
bool identify(Context& context, const Instruction& instruction, const ShownProcessor& processor);

// What the program says by the markers of assay/client.h.

// Does what the marker says that a thread has just reached; rax points to it. True if it switches
// collecting off or on: other versions of translated code are due then.
bool do_marker(Context& context, ThreadTrace& trace, Regions& regions);

}  // namespace assay::native
