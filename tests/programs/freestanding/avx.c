// 32-byte loads and stores. Exits with 77 where the processor lacks AVX.
#include "freestanding.h"

#include <cpuid.h>

typedef float vector __attribute__((vector_size(32), may_alias));
typedef float loose_vector __attribute__((vector_size(32), aligned(4), may_alias));

static float input[4096 + 8] __attribute__((aligned(64)));
static float output[4096 + 8] __attribute__((aligned(64)));

static NOINLINE __attribute__((target("avx"))) void scale(int from, int to) {
    for (int i = 0; i + 8 <= 4096; i += 8) {
        *(loose_vector*)(output + to + i) = *(loose_vector*)(input + from + i) * 0.25f;
    }
}

static NOINLINE __attribute__((target("avx"))) void broadcast(void) {
    for (int i = 0; i + 8 <= 4096; i += 24) *(vector*)(output + i) += input[i + 1];
}

static NOINLINE int has_avx(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_AVX) && (c & bit_OSXSAVE);
}

int program(void) {
    if (!has_avx()) return 77;
    for (int i = 0; i < 4096; ++i) input[i] = (float)(i % 1000);
    scale(0, 0);
    scale(3, 5);
    broadcast();
    double sum = 0;
    for (int i = 0; i < 4096; ++i) sum += (double)output[i];
    write_number("sum", (uint64_t)(int64_t)sum);
    return 0;
}
