/* Leaves a required function out. */
#include "assay/vprofiler.h"

static const char* name(void) {
    return "no_prof_init";
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
};
