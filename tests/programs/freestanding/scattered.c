// Drives scattered.S. Without AVX there are no references of 32 bytes.
#include "freestanding.h"

#include <cpuid.h>

#define SCATTERED(name) uint64_t name(void* area, uint64_t times, uint64_t state)
SCATTERED(scattered_loads);
SCATTERED(scattered_stores);
SCATTERED(scattered_modifies);
SCATTERED(scattered_carries);
SCATTERED(scattered_flags);
SCATTERED(scattered_vectors);
SCATTERED(scattered_wide);
SCATTERED(scattered_records);
SCATTERED(scattered_seldom);
SCATTERED(scattered_constants);

// 8192 misses of a reference are needed until it is checked in another way.
enum { TIMES = 12000 };

static unsigned char area[(4 << 20) + 64] __attribute__((aligned(64)));

static NOINLINE int has_avx(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_AVX) && (c & bit_OSXSAVE);
}

int program(void) {
    uint64_t sum = 1;
    sum = scattered_stores(area, TIMES, sum | 1);
    sum = scattered_loads(area, TIMES, sum | 1);
    sum = scattered_modifies(area, TIMES, sum | 1);
    sum = scattered_carries(area, TIMES, sum | 1);
    sum = scattered_flags(area, TIMES, sum | 1);
    sum = scattered_vectors(area, TIMES, sum | 1);
    sum = scattered_records(area, TIMES, sum | 1);
    sum = scattered_seldom(area, TIMES, sum | 1);
    sum = scattered_constants(area, TIMES, sum | 1);
    write_number("sum", sum);
    if (has_avx()) write_number("wide", scattered_wide(area, TIMES, sum | 1));
    // Again, with the checks that they have now.
    write_number("loads", scattered_loads(area, TIMES / 4, 5));
    return 0;
}
