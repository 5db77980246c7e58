// Drives unusual.S.
#include "freestanding.h"

uint64_t unusual_all(void* where, uint64_t number);

static unsigned char area[4096] __attribute__((aligned(64)));

int program(void) {
    for (size_t i = 0; i < sizeof area; ++i) area[i] = (unsigned char)(i * i + 7);
    uint64_t sum = 0;
    for (uint64_t i = 0; i + 512 < sizeof area; i += 97) sum = sum * 3 + unusual_all(area + i, i);
    write_number("sum", sum);
    return 0;
}
