// Drives bits.S with bit numbers on both sides of the base address.
#include "freestanding.h"

uint64_t bits_all(void* middle, int64_t bit);

static unsigned char area[16384] __attribute__((aligned(64)));

int program(void) {
    uint64_t sum = 0;
    for (int64_t bit = -60000; bit < 60000; bit += 137) {
        area[8192] |= 16;  // bsf of zero leaves its destination undefined
        sum = sum * 3 + bits_all(area + 8192, bit);
    }
    write_number("sum", sum);
    return 0;
}
