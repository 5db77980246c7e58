// Drives frames.S.
#include "freestanding.h"

uint64_t framed(void* where);
void callee(void);

static struct {
    uint64_t values[3];
    void (*target)(void);
    unsigned char gap[40];
} areas[16] __attribute__((aligned(64)));

int program(void) {
    uint64_t sum = 0;
    for (int round = 0; round < 50; ++round) {
        for (int i = 0; i < 16; ++i) {
            areas[i].values[0] += (uint64_t)round + 1;
            areas[i].target = callee;
            sum = sum * 5 + framed(&areas[i]);
        }
    }
    write_number("sum", sum);
    return 0;
}
