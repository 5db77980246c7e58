/* A replacement policy, as fifo, and a prefetcher that asks for the next line. The environment
 * variable ASSAY_POLICY has two words: an attack on the process, and the function that makes it.
 */
#include "assay/cache_policy.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __GNUC__
#define EXPORT __attribute__((visibility("default")))
#endif

struct fifo {
    uint32_t ways;
    uint32_t oldest[]; /* by set */
};

/* Whether the environment asks for this in this function. */
static int is_told(char what, const char* function) {
    const char* const told = getenv("ASSAY_POLICY");
    const char* const space = told ? strchr(told, ' ') : NULL;
    return space && *told == what && strcmp(space + 1, function) == 0;
}

static void perhaps(const char* function) {
    static char small[64];
    char* volatile around = small; /* which the compiler does not follow */
    const char* const told = getenv("ASSAY_POLICY");
    const char* const space = told ? strchr(told, ' ') : NULL;
    if (!space || strcmp(space + 1, function) != 0) return;
    switch (*told) {
        case 'e': /* end */
            _exit(0);
        case 'k': /* kill */
            raise(SIGKILL);
            return;
        case 'l': /* loop */
            for (;;) pause();
        case 's': /* smash */
            memset(around - 4096, 'A', 65536);
    }
}

__attribute__((constructor)) static void construct(void) {
    perhaps("constructor");
}

static void* create(uint64_t sets, uint32_t ways, uint64_t seed) {
    struct fifo* const made = calloc(1, sizeof *made + sets * sizeof made->oldest[0]);
    (void)seed;
    perhaps("create");
    if (made) made->ways = ways;
    return made;
}
static void destroy(void* self) {
    perhaps("destroy");
    free(self);
}
static void hit(void* self, uint64_t set, uint32_t way, const cp_access_t* access) {
    (void)self, (void)set, (void)way, (void)access;
    perhaps("hit");
}
static uint32_t victim(void* self, uint64_t set, const cp_access_t* access) {
    struct fifo* const fifo = self;
    (void)access;
    perhaps("victim");
    if (is_told('w', "victim")) return UINT32_MAX - 5;
    if (is_told('d', "victim")) { /* differ */
        static uint32_t calls;
        return ++calls % fifo->ways;
    }
    return fifo->oldest[set]++ % fifo->ways;
}
static void fill(void* self, uint64_t set, uint32_t way, const cp_access_t* access) {
    (void)self, (void)set, (void)way, (void)access;
    perhaps("fill");
}

EXPORT const cp_replacement_t assay_replacement = {
    .size = sizeof(cp_replacement_t),
    .version = CP_VERSION,
    .create = create,
    .destroy = destroy,
    .hit = hit,
    .victim = victim,
    .fill = fill,
};

static void* create_prefetcher(uint32_t line_bytes, uint32_t degree, uint32_t distance) {
    (void)line_bytes, (void)degree, (void)distance;
    return malloc(1);
}
static uint32_t reference(void* self, const cp_access_t* access, uint64_t* lines, uint32_t room) {
    (void)self;
    perhaps("reference");
    lines[0] = access->line + 1;
    if (is_told('r', "reference")) { /* room */
        for (uint32_t i = 0; i <= room; ++i) lines[i] = i;
        return room + 1;
    }
    return access->hit ? 0 : 1;
}

EXPORT const cp_prefetcher_t assay_prefetcher = {
    .size = sizeof(cp_prefetcher_t),
    .version = CP_VERSION,
    .create = create_prefetcher,
    .destroy = free,
    .reference = reference,
};
