// Drives series.S.
#include "freestanding.h"

uint64_t series(void* stack, const void* table);

static unsigned char stacks[8 * 4096] __attribute__((aligned(4096)));
static unsigned char table[3 * 4096] __attribute__((aligned(4096)));

int program(void) {
    uint64_t sum = 0, state = 1;
    for (unsigned i = 0; i < sizeof table; ++i) table[i] = (unsigned char)(i * 7);
    for (unsigned i = 0; i < 6000; ++i) {
        const uint64_t random = next_random(&state);
        // In half of the rounds no word is aligned.
        const uint64_t place = 512 + random % (sizeof stacks - 1024) / 8 * 8;
        unsigned char* const stack = stacks + place + (i % 2 ? random >> 40 & 7 : 0);
        sum += series(stack, table + (random >> 32) % 4096 / 8 * 8);
    }
    write_number("sum", sum);
    return 0;
}
