// Allocates memory at three places. The block of one place does not fit into 32 KiB, and the
// program walks through it again and again.
#include <stdio.h>
#include <stdlib.h>

static long walk(volatile char* block, size_t bytes, int times) {
    long sum = 0;
    for (int i = 0; i < times; ++i)
        for (size_t at = 0; at < bytes; at += 64) sum += block[at];
    return sum;
}

static volatile char* small(void) {
    return aligned_alloc(64, 8192);
}

static volatile char* large(void) {
    return aligned_alloc(64, 65536);
}

static volatile char* once(void) {
    return aligned_alloc(64, 4096);
}

int main(void) {
    long sum = walk(small(), 8192, 100);
    sum += walk(large(), 65536, 10);
    for (int i = 0; i < 3; ++i) sum += walk(once(), 4096, 1);
    printf("%ld\n", sum);
    return 0;
}
