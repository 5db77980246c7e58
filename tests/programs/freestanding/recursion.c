// Calls, returns, pushes and pops: deep and wide recursion.
#include "freestanding.h"

static NOINLINE uint64_t fibonacci(uint64_t n) {
    if (n < 2) return n;
    return fibonacci(n - 1) + fibonacci(n - 2);
}

static NOINLINE uint64_t ackermann(uint64_t m, uint64_t n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

// Keeps every callee-saved register busy, so that each call pushes and pops them.
static NOINLINE uint64_t spread(uint64_t depth, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    if (depth == 0) return a ^ b ^ c ^ d;
    uint64_t one = spread(depth - 1, b, c, d, a + depth);
    uint64_t two = spread(depth - 1, one, a, b * 3, c);
    return one * 7 + two + spread(depth / 2, a, b, c, d);
}

int program(void) {
    write_number("fibonacci", fibonacci(17));
    write_number("ackermann", ackermann(2, 60));
    write_number("spread", spread(10, 1, 2, 3, 4));
    return 0;
}
