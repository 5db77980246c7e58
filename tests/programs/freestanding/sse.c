// SSE2 loads and stores of 4, 8 and 16 bytes, aligned and not. Vector extensions and inline
// assembly instead of intrinsics: those are inlined functions, which profilers name differently.
#include "freestanding.h"

typedef float vector __attribute__((vector_size(16), may_alias));
typedef float loose_vector __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint8_t byte_vector __attribute__((vector_size(16), may_alias));

static float input[4096] __attribute__((aligned(64)));
static float output[4096 + 16] __attribute__((aligned(64)));
static double doubles[1024];

static NOINLINE void fill(void) {
    for (int i = 0; i < 4096; ++i) input[i] = (float)(i & 255);
}

static NOINLINE void scale_aligned(void) {
    for (int i = 0; i < 4096; i += 4) *(vector*)(output + i) = *(vector*)(input + i) * 1.5f;
}

static NOINLINE void copy_unaligned(void) {
    for (int i = 0; i + 8 < 4096; i += 5) {
        *(loose_vector*)(output + i + 3) = *(loose_vector*)(input + i + 1);
    }
}

static NOINLINE void halves(void) {
    for (int i = 0; i + 4 < 4096; i += 3) {
        __asm__ volatile(
            "movlps (%0), %%xmm0\n\tmovhps 8(%0), %%xmm0\n\tmovhps %%xmm0, (%1)\n\t"
            "movlps %%xmm0, 8(%1)\n\tmovss 4(%0), %%xmm1\n\taddss (%1), %%xmm1\n\t"
            "movss %%xmm1, 4(%1)"
            :
            : "r"(input + i), "r"(output + i)
            : "xmm0", "xmm1", "memory");
    }
}

static NOINLINE double scalars(void) {
    double sum = 0;
    for (int i = 0; i < 1024; ++i) {
        doubles[i] = (double)input[i] + (double)output[1023 - i];
        sum += doubles[i] * 0.5;
    }
    return sum;
}

static NOINLINE void bytes(void) {
    byte_vector* line = (byte_vector*)output;
    for (int i = 0; i < 512; ++i) {
        byte_vector value = (line[i] + 3) ^ line[i * 7 & 511];
        __asm__ volatile("movntdq %1, %0" : "=m"(line[i]) : "x"(value));
    }
}

static NOINLINE uint64_t check(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 512; ++i) {
        const uint64_t __attribute__((may_alias))* pair = (const void*)(output + 4 * i);
        sum = (sum * 31 + pair[0]) * 31 + pair[1];
    }
    return sum;
}

int program(void) {
    fill();
    scale_aligned();
    copy_unaligned();
    halves();
    write_number("scalars", (uint64_t)(int64_t)scalars());
    bytes();
    write_number("bytes", check());
    return 0;
}
