// Calls through a table in memory and through registers; jumps through memory.
#include "freestanding.h"

typedef uint64_t (*step)(uint64_t);
static NOINLINE uint64_t twist(uint64_t x) {
    return x * 0x9e3779b97f4a7c15u;
}
static NOINLINE uint64_t fold(uint64_t x) {
    return x ^ x >> 29;
}
static NOINLINE uint64_t turn(uint64_t x) {
    return x << 17 | x >> 47;
}
static NOINLINE uint64_t bump(uint64_t x) {
    return x + 0x1234567;
}

static step volatile steps[4] = {twist, fold, turn, bump};

static NOINLINE uint64_t through_table(uint64_t value) {
    for (int i = 0; i < 4000; ++i) value = steps[value & 3](value + (uint64_t)i);
    return value;
}

static NOINLINE uint64_t through_register(step chosen, uint64_t value) {
    for (int i = 0; i < 500; ++i) value = chosen(value) + 1;
    return value;
}

int program(void) {
    write_number("table", through_table(1));
    uint64_t value = 3;
    for (int i = 0; i < 4; ++i) value = through_register(steps[i], value);
    write_number("register", value);
    return 0;
}
