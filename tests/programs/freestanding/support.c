#include "freestanding.h"

NOINLINE void write_number(const char* label, uint64_t number) {
    char line[80];
    size_t used = 0;
    while (label[used] != '\0') {
        line[used] = label[used];
        ++used;
    }
    line[used++] = ' ';
    for (int shift = 60; shift >= 0; shift -= 4)
        line[used++] = "0123456789abcdef"[number >> shift & 15];
    line[used++] = '\n';
    write_bytes(line, used);
}

NOINLINE uint64_t next_random(uint64_t* state) {
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x;
}
