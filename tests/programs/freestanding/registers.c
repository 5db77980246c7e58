// Drives registers.S.
#include "freestanding.h"

uint64_t every_register(void* areas, uint64_t times);

static unsigned char areas[16 * 4096] __attribute__((aligned(4096)));

int program(void) {
    // So often that references which miss are checked in another way in the end.
    write_number("sum", every_register(areas, 12000));
    return 0;
}
