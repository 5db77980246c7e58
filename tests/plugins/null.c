/* A profiler that captures nothing: what remains is the cost of running under assay. */
#include "assay/vprofiler.h"

static const char* name(void) {
    return "null";
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
    .vp_prof_init = trace_vlist_table_alloc,
};
