// Data that must lie at a multiple of more than any page.
#include <stdint.h>
#include <stdio.h>

enum { kAlignment = 16 << 20 };
static volatile char data[64] __attribute__((aligned(kAlignment)));

int main(void) {
    data[0] = 1;
    volatile uintptr_t address = (uintptr_t)data;  // or the compiler knows the answer
    printf("%d\n", address % kAlignment == 0);
    return 0;
}
