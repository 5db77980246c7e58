/* assay/cache_policy.h - replacement policies and prefetchers for simulated caches.
 *
 * A machine file (docs/reference/machine-file.md) can name a shared library in place of a policy or
 * a prefetcher of assay's own: `replacement: ./mine.so`, `prefetch: ./mine.so`. The library exports
 * one constant table, assay_replacement or assay_prefetcher; it links against nothing:
 *
 *     const cp_replacement_t assay_replacement = { .size = sizeof(cp_replacement_t),
 *         .version = CP_VERSION, .create = ..., .destroy = ..., .hit = ..., ... };
 *
 * The functions are called on one thread, by the process that simulates, not by the profiled
 * program. One object is made for each instance of a cache. The functions must depend only on
 * their arguments and their object, or two runs differ. A crash loses the columns of the
 * profile.
 */
#ifndef ASSAY_CACHE_POLICY_H
#define ASSAY_CACHE_POLICY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CP_VERSION 1u
#define CP_REPLACEMENT_SYMBOL "assay_replacement"
#define CP_PREFETCHER_SYMBOL "assay_prefetcher"

/* A reference to a line of the cache. Members may be added at the end: compare `size`. */
typedef struct cp_access {
    uint32_t size;     /* of this struct, as assay was built */
    uint32_t prefetch; /* 1: the line is prefetched, 0: the program refers to it */
    uint64_t line;     /* number of the line: its address divided by the size of a line */
    uint64_t address;  /* for prefetchers: address of the reference; else 0 */
    uint64_t pc;       /* of the instruction that refers or that caused the prefetch */
    uint32_t hit;      /* for prefetchers: 1 if the line was there */
    uint32_t first;    /* for prefetchers: 1 at the first reference to a prefetched line */
} cp_access_t;

/* A replacement policy. All members except `leave` are required. Free ways are filled first, the
 * lowest before others; then `victim` is asked. */
typedef struct cp_replacement {
    uint32_t size;    /* sizeof(cp_replacement_t) as the library was built */
    uint32_t version; /* CP_VERSION as the library was built */

    /* Returns a new object for a cache of `sets` sets of `ways` ways, or NULL on failure. `seed`
     * is that of the machine file, by default 1. */
    void* (*create)(uint64_t sets, uint32_t ways, uint64_t seed);
    void (*destroy)(void* self);
    /* The line in `way` is referred to. */
    void (*hit)(void* self, uint64_t set, uint32_t way, const cp_access_t* access);
    /* Returns the way, below `ways`, that makes room for `access`. All ways are in use. */
    uint32_t (*victim)(void* self, uint64_t set, const cp_access_t* access);
    /* The line of `access` has come into `way`. */
    void (*fill)(void* self, uint64_t set, uint32_t way, const cp_access_t* access);
    /* The line in `way` has been replaced or invalidated. */
    void (*leave)(void* self, uint64_t set, uint32_t way);
} cp_replacement_t;

/* A prefetcher. All members are required. */
typedef struct cp_prefetcher {
    uint32_t size;    /* sizeof(cp_prefetcher_t) as the library was built */
    uint32_t version; /* CP_VERSION as the library was built */

    /* Returns a new object for a cache with lines of `line_bytes` bytes, or NULL on failure. */
    void* (*create)(uint32_t line_bytes, uint32_t degree, uint32_t distance);
    void (*destroy)(void* self);
    /* A reference by the program has reached the cache. Stores the numbers of at most `room`
     * lines to prefetch in `lines`, and returns their number. */
    uint32_t (*reference)(void* self, const cp_access_t* access, uint64_t* lines, uint32_t room);
} cp_prefetcher_t;

#ifdef __cplusplus
}
#endif
#endif
