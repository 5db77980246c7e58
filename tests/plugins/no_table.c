/* A library that is no profiler. */
#include "assay/vprofiler.h"

VP_EXPORT int assay_is_not_here(void);

VP_EXPORT int assay_is_not_here(void) {
    return 0;
}
