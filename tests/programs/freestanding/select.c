// Drives select.S.
#include "freestanding.h"

uint64_t select_all(const void* where, uint64_t seed);

static unsigned char area[8192] __attribute__((aligned(64)));

int program(void) {
    for (size_t i = 0; i < sizeof area; ++i) area[i] = (unsigned char)(i * 29 + 3);
    uint64_t sum = 0;
    for (uint64_t i = 0; i + 1024 < sizeof area; i += 333) sum += select_all(area + i, i);
    write_number("sum", sum);
    return 0;
}
