/* Loads two variables from fixed places, one three times as often as the other. */
#include <stdint.h>
#include <stdio.h>

static volatile uint64_t often = 3, seldom = 5;

static uint64_t load_often(void) {
    return often;
}
static uint64_t load_seldom(void) {
    return seldom;
}

int main(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 100; ++i) sum += load_often() + load_often() + load_often() + load_seldom();
    printf("%lx %lx %lu\n", (unsigned long)(uintptr_t)&often, (unsigned long)(uintptr_t)&seldom,
           (unsigned long)sum);
    return 0;
}
