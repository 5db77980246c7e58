// Drives x87.S at aligned and odd addresses.
#include "freestanding.h"

uint64_t float_all(void* where);

static unsigned char area[8192] __attribute__((aligned(64)));

int program(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 256 < sizeof area; i += 517) {
        area[i] = (unsigned char)i;
        sum += float_all(area + i);
    }
    write_number("sum", sum);
    return 0;
}
