// Calls the functions of many.S in a pseudo-random order, some of them much more often.
#include "freestanding.h"

extern uint32_t (*const many_functions[])(uint32_t number);

static NOINLINE uint32_t call_some(uint32_t count, uint32_t times, uint64_t* state) {
    uint32_t number = 1;
    for (uint32_t i = 0; i < times; ++i) {
        const uint64_t random = next_random(state);
        number = many_functions[random % count](number ^ (uint32_t)(random >> 40));
    }
    return number;
}

int program(void) {
    uint32_t count = 0;
    while (many_functions[count] != NULL) ++count;
    uint64_t state = 88172645463325252u;
    for (int round = 0; round < 5; ++round) {
        write_number("all", call_some(count, 8000, &state));
        write_number("few", call_some(7, 1000, &state));
    }
    return 0;
}
