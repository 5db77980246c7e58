/* Works in two phases that take turns: one computes, the other one walks through memory. */
#include <stdio.h>

static unsigned numbers[1 << 20];

static unsigned compute(unsigned x) {
    for (int i = 0; i < 500000; ++i) x = x * 1664525 + 1013904223;
    return x;
}

static unsigned walk(unsigned x) {
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; ++i) x += numbers[i]++;
    return x;
}

int main(void) {
    unsigned x = 1;
    for (int i = 0; i < 5; ++i) x = walk(compute(x));
    printf("%u\n", x);
    return 0;
}
