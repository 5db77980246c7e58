/* What version 2 of assay/cache_policy.h adds: a policy that bypasses the kinds of references in
 * its parameter `bypass`, or those of `others` than the first thread, and a prefetcher that asks
 * for the next line into the level `into`, until one of its lines has left unused. */
#include "assay/cache_policy.h"

#include <stdlib.h>
#include <string.h>

#ifdef __GNUC__
#define EXPORT __attribute__((visibility("default")))
#endif

static const char* parameter(const cp_cache_t* cache, const char* known) {
    const char* value = "";
    for (uint64_t i = 0; i < cache->parameter_count; ++i) {
        if (strcmp(cache->parameters[i].name, known) != 0) {
            cache->error("there is no such parameter");
            return NULL;
        }
        value = cache->parameters[i].value;
    }
    return value;
}

struct policy {
    uint32_t ways;
    int bypasses[3], bypasses_others;
    uint32_t oldest[]; /* by set */
};

static void* create_policy(const cp_cache_t* cache) {
    const char* const kinds = parameter(cache, "bypass");
    struct policy* const made =
        kinds ? calloc(1, sizeof *made + cache->sets * sizeof made->oldest[0]) : NULL;
    if (!made) return NULL;
    made->ways = cache->ways;
    made->bypasses[CP_FETCH] = strstr(kinds, "fetch") != NULL;
    made->bypasses[CP_READ] = strstr(kinds, "read") != NULL;
    made->bypasses[CP_WRITE] = strstr(kinds, "write") != NULL;
    made->bypasses_others = strstr(kinds, "others") != NULL;
    return made;
}
static void hit(void* self, uint64_t set, uint32_t way, const cp_access_t* access) {
    (void)self, (void)set, (void)way, (void)access;
}
static uint32_t victim(void* self, uint64_t set, const cp_access_t* access) {
    struct policy* const policy = self;
    if (policy->bypasses[access->kind] || (policy->bypasses_others && access->thread != 0))
        return CP_BYPASS;
    return policy->oldest[set]++ % policy->ways;
}
static void fill(void* self, uint64_t set, uint32_t way, const cp_access_t* access) {
    (void)self, (void)set, (void)way, (void)access;
}

EXPORT const cp_replacement_t assay_replacement = {
    .size = sizeof(cp_replacement_t),
    .version = CP_VERSION,
    .create_for = create_policy,
    .destroy = free,
    .hit = hit,
    .victim = victim,
    .fill = fill,
};

struct prefetcher {
    uint32_t into;
    int filled, stopped;
};

static void* create_prefetcher(const cp_cache_t* cache) {
    const char* const into = parameter(cache, "into");
    struct prefetcher* const made = into ? calloc(1, sizeof *made) : NULL;
    if (made) made->into = (uint32_t)atoi(into);
    return made;
}
static uint32_t wish(void* self, const cp_access_t* access, cp_wish_t* wishes, uint32_t room) {
    struct prefetcher* const prefetcher = self;
    if (access->hit || prefetcher->stopped || room == 0) return 0;
    wishes[0].line = access->line + 1;
    wishes[0].level = prefetcher->into;
    return 1;
}
static void filled(void* self, const cp_access_t* access) {
    struct prefetcher* const prefetcher = self;
    prefetcher->filled += access->prefetch == 1;
}
static void leave(void* self, uint64_t line, uint32_t dirty, uint32_t unused) {
    struct prefetcher* const prefetcher = self;
    (void)line, (void)dirty;
    if (unused && prefetcher->filled > 0) prefetcher->stopped = 1;
}

EXPORT const cp_prefetcher_t assay_prefetcher = {
    .size = sizeof(cp_prefetcher_t),
    .version = CP_VERSION,
    .create_for = create_prefetcher,
    .destroy = free,
    .wish = wish,
    .fill = filled,
    .leave = leave,
};
