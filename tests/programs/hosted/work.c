// An ordinary program with functions whose counts two profilers must agree on, and one that runs
// until it is killed.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kCells = 100000 };
static uint32_t cells[kCells];

__attribute__((noinline)) static void fill_cells(void) {
    uint64_t state = 99;
    for (int i = 0; i < kCells; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        cells[i] = (uint32_t)(state >> 33);
    }
}

__attribute__((noinline)) static uint64_t sum_cells(int stride) {
    uint64_t sum = 0;
    for (int start = 0; start < stride; ++start) {
        for (int i = start; i < kCells; i += stride) sum += cells[i];
    }
    return sum;
}

__attribute__((noinline)) static int count_bits(uint32_t value) {
    int bits = 0;
    for (; value != 0; value &= value - 1) ++bits;
    return bits;
}

__attribute__((noinline)) static long count_all_bits(void) {
    long bits = 0;
    for (int i = 0; i < kCells; ++i) bits += count_bits(cells[i]);
    return bits;
}

int main(int argc, char** argv) {
    fill_cells();
    printf("%llu %llu %ld\n", (unsigned long long)sum_cells(1), (unsigned long long)sum_cells(97),
           count_all_bits());
    if (argc == 2 && strcmp(argv[1], "forever") == 0) {
        printf("%d\n", (int)getpid());
        fflush(stdout);
        for (;;) fill_cells();
    }
    return 0;
}
