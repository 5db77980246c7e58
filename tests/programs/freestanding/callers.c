// The same functions called from several others, to which their cache misses and references belong.
#include "freestanding.h"

enum { kLine = 64, kLines = 100 };

// Not static, so that the compiler does not know what is in them.
uint8_t once[2 * kLines * kLine] __attribute__((aligned(64)));
uint8_t again[kLines * kLine] __attribute__((aligned(64)));
uint8_t path[kLines * kLine] __attribute__((aligned(64)));
uint8_t copied[1024] __attribute__((aligned(64)));

static NOINLINE uint64_t read_lines(const uint8_t* from, uint64_t lines) {
    uint64_t sum = 0;
    __asm__ volatile("" : : : "memory");  // so that it is called each time
    for (uint64_t i = 0; i < lines; ++i) sum += from[i * kLine];
    return sum;
}

// As many reads, and as many writes, as bytes, besides the return.
static NOINLINE void copy(uint8_t* to, const uint8_t* from, uint64_t bytes) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

// The recursion comes back to its first context.
static NOINLINE uint64_t descend(uint64_t depth) {
    const uint64_t sum = path[depth * kLine];
    return depth == 0 ? sum : sum + descend(depth - 1);
}

// Misses all 200 lines, and copies 10 bytes.
static NOINLINE uint64_t cold(void) {
    copy(copied, once, 10);
    return read_lines(once + kLine, 2 * kLines - 1);
}

// Misses none, and copies 1000 bytes.
static NOINLINE uint64_t warm(void) {
    copy(copied, once, 1000);
    return read_lines(once, 2 * kLines);
}

// Misses 100 lines in one of three calls.
static NOINLINE uint64_t mixed(void) {
    return read_lines(again, kLines);
}

int program(void) {
    uint64_t sum = cold() + warm();
    for (int i = 0; i < 3; ++i) sum += mixed();
    write_number("sum", sum + descend(kLines - 1));
    return 0;
}
