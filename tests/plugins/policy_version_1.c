/* A replacement policy as a program was built with version 1 of assay/cache_policy.h: the table
 * ends with `leave`. */
#include <stdint.h>
#include <stdlib.h>

#ifdef __GNUC__
#define EXPORT __attribute__((visibility("default")))
#endif

struct access {
    uint32_t size, prefetch;
    uint64_t line, address, pc;
    uint32_t hit, first;
};

struct fifo {
    uint32_t ways;
    uint32_t oldest[]; /* by set */
};

static void* create(uint64_t sets, uint32_t ways, uint64_t seed) {
    struct fifo* const made = calloc(1, sizeof *made + sets * sizeof made->oldest[0]);
    (void)seed;
    if (made) made->ways = ways;
    return made;
}
static void touched(void* self, uint64_t set, uint32_t way, const struct access* access) {
    (void)self, (void)set, (void)way;
    if (access->size < sizeof *access) abort();
}
static uint32_t victim(void* self, uint64_t set, const struct access* access) {
    struct fifo* const fifo = self;
    (void)access;
    return fifo->oldest[set]++ % fifo->ways;
}

EXPORT const struct {
    uint32_t size, version;
    void* (*create)(uint64_t, uint32_t, uint64_t);
    void (*destroy)(void*);
    void (*hit)(void*, uint64_t, uint32_t, const struct access*);
    uint32_t (*victim)(void*, uint64_t, const struct access*);
    void (*fill)(void*, uint64_t, uint32_t, const struct access*);
    void (*leave)(void*, uint64_t, uint32_t);
} assay_replacement = {56, 1, create, free, touched, victim, touched, NULL};
