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

/* Version 2 added what is marked (2). A library that was built for version 1 goes on working. */
#define CP_VERSION 2u
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
    uint32_t kind;     /* (2) CP_FETCH, CP_READ or CP_WRITE: what the program does, or what has
                          caused the prefetch */
    uint32_t core;     /* (2) of the machine that refers, from 0 */
    uint32_t dirty;    /* (2) for fill: 1 if memory does not have the line's data */
    uint32_t thread;   /* (2) of the program, from 0: several can run on a core. 0 for translation
                          buffers */
} cp_access_t;

enum { CP_FETCH = 0, CP_READ = 1, CP_WRITE = 2 };

/* (2) A parameter from the machine file: a key that assay does not know, and its value. */
typedef struct cp_parameter {
    const char *name, *value;
} cp_parameter_t;

/* (2) A cache, for create_for. Valid during the call. Members may be added at the end. */
typedef struct cp_cache {
    uint32_t size;                    /* of this struct, as assay was built */
    uint32_t level;                   /* from 1; 0 for a translation buffer */
    const char* name;                 /* from the machine file */
    uint64_t sets;                    /* not for prefetchers: 0 */
    uint32_t ways;                    /* not for prefetchers: 0 */
    uint32_t line_bytes;              /* bytes of a line, or 1 for a translation buffer */
    uint64_t seed;                    /* of a policy, by default 1 */
    uint32_t degree;                  /* of a prefetcher, by default 1 */
    uint32_t distance;                /* of a prefetcher, by default 1 */
    const cp_parameter_t* parameters; /* `parameter_count` of them, as the file has them */
    uint64_t parameter_count;
    /* Call this before create_for returns NULL: why it failed, for example which parameter is
     * wrong. One line, copied. */
    void (*error)(const char* message);
} cp_cache_t;

/* (2) Returned by `victim`: the line is not brought into this cache. Not allowed in inclusive
 * caches, in data caches of one core with coherence, and in translation buffers. */
#define CP_BYPASS UINT32_MAX

/* A replacement policy. Required are `create` or `create_for`, `destroy`, `hit`, `victim` and
 * `fill`. Free ways are filled first, the lowest before others; then `victim` is asked. */
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

    /* (2) In place of `create`. */
    void* (*create_for)(const cp_cache_t* cache);
} cp_replacement_t;

/* (2) A line to prefetch. */
typedef struct cp_wish {
    uint64_t line;
    uint32_t level;    /* into the first cache of this level or below; 0: into this cache */
    uint32_t reserved; /* 0 */
} cp_wish_t;

/* A prefetcher. Required are `create` or `create_for`, `destroy`, and `reference` or `wish`. */
typedef struct cp_prefetcher {
    uint32_t size;    /* sizeof(cp_prefetcher_t) as the library was built */
    uint32_t version; /* CP_VERSION as the library was built */

    /* Returns a new object for a cache with lines of `line_bytes` bytes, or NULL on failure. */
    void* (*create)(uint32_t line_bytes, uint32_t degree, uint32_t distance);
    void (*destroy)(void* self);
    /* A reference by the program has reached the cache. Stores the numbers of at most `room`
     * lines to prefetch in `lines`, and returns their number. */
    uint32_t (*reference)(void* self, const cp_access_t* access, uint64_t* lines, uint32_t room);

    /* (2) In place of `create`. */
    void* (*create_for)(const cp_cache_t* cache);
    /* (2) In place of `reference`, for prefetches into other levels. */
    uint32_t (*wish)(void* self, const cp_access_t* access, cp_wish_t* wishes, uint32_t room);
    /* (2) The line of `access` has come into the cache. May be NULL. */
    void (*fill)(void* self, const cp_access_t* access);
    /* (2) `line` has left the cache. `unused`: a prefetch brought it, and nothing referred to it.
     * May be NULL. */
    void (*leave)(void* self, uint64_t line, uint32_t dirty, uint32_t unused);
} cp_prefetcher_t;

#ifdef __cplusplus
}
#endif
#endif
