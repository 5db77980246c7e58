// Drives footprint.S.
#include "freestanding.h"

uint64_t walk_forward(void);
uint64_t walk_backward(void);

int program(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 3; ++i) sum += walk_forward() + walk_backward();
    write_number("sum", sum);
    return 0;
}
