/* A profiler that captures nothing: what remains is the cost of running under assay. */
#include "assay/vprofiler.h"

#include <stdlib.h>

static trace_vlist_table_t* spec;

static const char* name(void) {
    return "null";
}

static trace_vlist_table_t* prof_init(void) {
    return spec = trace_vlist_table_alloc();
}

static void prof_release(void) {
    free(spec);
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
    .vp_prof_init = prof_init,
    .vp_prof_release = prof_release,
};
