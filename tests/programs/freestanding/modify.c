// Drives modify.S over memory that does not fit in a small cache.
#include "freestanding.h"

uint64_t modify_all(void* where);

static unsigned char area[16384] __attribute__((aligned(64)));

int program(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 128 <= sizeof area; i += 1088) sum += modify_all(area + i);
    write_number("sum", sum);
    return 0;
}
