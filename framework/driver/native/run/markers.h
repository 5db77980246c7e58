// What the program says by the markers of assay/client.h.
#pragma once

#include "framework/driver/native/trace/regions.h"
#include "framework/driver/native/trace/thread_trace.h"

namespace assay::native {

// Does what the marker says that a thread has just reached; rax points to it. True if it switches
// collecting off or on: other versions of translated code are due then.
bool do_marker(Context& context, ThreadTrace& trace, Regions& regions);

}  // namespace assay::native
