// Drives atomics.S.
#include "freestanding.h"

uint64_t exchange_all(void* where);

static unsigned char area[8192] __attribute__((aligned(64)));

int program(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof area; i += 1024) sum = sum * 3 + exchange_all(area + i);
    write_number("seen", sum);
    return 0;
}
