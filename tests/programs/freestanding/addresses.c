// Streams of addresses whose strides, footprints and alignment are known on paper.
#include "freestanding.h"

typedef uint32_t __attribute__((may_alias, aligned(1))) loose32;
typedef uint64_t __attribute__((may_alias, aligned(1))) loose64;

static unsigned char memory[64 * 1024 + 4096] __attribute__((aligned(4096)));

static volatile uint64_t* cell(size_t offset) {
    return (volatile uint64_t*)(memory + offset);
}

// 1000 times one address.
static NOINLINE void constant(volatile uint64_t* where) {
    for (int i = 0; i < 1000; ++i) *where;
}

// 4096 references, 16 bytes apart: 1024 lines, 16 pages.
static NOINLINE void strided(volatile uint64_t* where) {
    for (int i = 0; i < 4096; ++i) where[i * 2] = 1;
}

// 10 rows of 10: 90 steps of 8, 9 steps of 4024 to the next row: 20 lines, 10 pages.
static NOINLINE void rows(volatile uint64_t* where) {
    for (int row = 0; row < 10; ++row)
        for (int i = 0; i < 10; ++i) where[row * 512 + i];
}

// Each of 8192 places once, in the order of a linear congruential generator of full period (Knuth,
// The Art of Computer Programming, volume 2, section 3.2.1.2): 1024 lines, 16 pages.
static NOINLINE void irregular(volatile uint64_t* where) {
    uint32_t place = 1;
    for (int i = 0; i < 8192; ++i) {
        where[place];
        place = (place * 4005 + 1237) % 8192;
    }
}

// 1500 rows of 4: 4500 steps of 8, 1499 steps of 16 to the next row: 938 lines, 15 pages.
static NOINLINE void short_rows(volatile uint64_t* where) {
    for (int row = 0; row < 1500; ++row)
        for (int i = 0; i < 4; ++i) where[row * 5 + i];
}

// 900 times one address, 100 times another.
static NOINLINE void hot(volatile uint64_t* where) {
    for (int i = 0; i < 1000; ++i) where[i % 10 == 0];
}

// Every one lies across two lines, the last one across two pages: 65 lines, 2 pages.
static NOINLINE void crossing(const volatile unsigned char* where) {
    for (int i = 0; i < 64; ++i) *(const volatile loose64*)(where + 60 + i * 64);
}

// Misaligned, but within a line.
static NOINLINE void misaligned(const volatile unsigned char* where) {
    for (int i = 0; i < 100; ++i) *(const volatile loose32*)(where + 1 + i * 8);
}

int program(void) {
    constant(cell(0));
    strided(cell(0));
    rows(cell(0));
    irregular(cell(0));
    short_rows(cell(0));
    hot(cell(0));
    crossing(memory);
    misaligned(memory);
    return 0;
}
