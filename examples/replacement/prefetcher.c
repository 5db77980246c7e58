/* A prefetcher: a miss also fetches the other line of an aligned pair of 128 bytes. Intel's
 * level 2 has one like it ("adjacent cache line prefetcher"). */
#include <assay/cache_policy.h>

#include <stddef.h>

static char nothing; /* the prefetcher has no state */

static void* create(uint32_t line_bytes, uint32_t degree, uint32_t distance) {
    (void)degree;
    (void)distance;
    return line_bytes == 64 ? &nothing : NULL;
}

static void destroy(void* self) {
    (void)self;
}

static uint32_t reference(void* self, const cp_access_t* access, uint64_t* lines, uint32_t room) {
    (void)self;
    if (access->hit || room == 0) return 0;
    lines[0] = access->line ^ 1;
    return 1;
}

const cp_prefetcher_t assay_prefetcher = {
    .size = sizeof(cp_prefetcher_t),
    .version = CP_VERSION,
    .create = create,
    .destroy = destroy,
    .reference = reference,
};
