// Reads 256 lines of memory, three times others: alone, after a prefetch of each, and twice with a
// flush of each in between.
#include "freestanding.h"

enum { kLines = 256, kLine = 64 };
static volatile char memory[3][kLines * kLine] __attribute__((aligned(4096)));

static NOINLINE long read_lines(const volatile char* lines) {
    long sum = 0;
    for (long i = 0; i < kLines; ++i) sum += lines[i * kLine];
    return sum;
}

static NOINLINE long read_prefetched(const volatile char* lines) {
    long sum = 0;
    for (long i = 0; i < kLines; ++i) {
        __asm__ volatile("prefetcht0 %0" ::"m"(lines[i * kLine]));
        sum += lines[i * kLine];
    }
    return sum;
}

static NOINLINE long read_flushed(const volatile char* lines) {
    long sum = 0;
    for (long i = 0; i < kLines; ++i) {
        sum += lines[i * kLine];
        __asm__ volatile("clflush %0" ::"m"(lines[i * kLine]) : "memory");
        sum += lines[i * kLine];
    }
    return sum;
}

int program(void) {
    return (int)(read_lines(memory[0]) + read_prefetched(memory[1]) + read_flushed(memory[2]));
}
