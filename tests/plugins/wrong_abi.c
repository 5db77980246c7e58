/* Built for a version of the interface that does not exist yet. */
#include "assay/vprofiler.h"

static const char* name(void) {
    return "wrong_abi";
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t) + 64,
    .abi_version = VP_ABI_VERSION + 1000,
    .vp_name = name,
    .vp_prof_init = trace_vlist_table_alloc,
};
