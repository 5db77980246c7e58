/* A table that ends before the required functions. */
#include "assay/vprofiler.h"

static const char* name(void) {
    return "wrong_size";
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = 16,
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
    .vp_prof_init = trace_vlist_table_alloc,
};
