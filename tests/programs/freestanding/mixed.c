// The same storage as bytes, words and quadwords: partial registers, sign and zero extension.
#include "freestanding.h"

static union {
    int8_t bytes[8192];
    int16_t words[4096];
    int32_t dwords[2048];
    int64_t qwords[1024];
} storage;

static NOINLINE void as_bytes(void) {
    for (int i = 0; i < 8192; ++i) storage.bytes[i] = (int8_t)(i * 11 + (i >> 3));
}

static NOINLINE int64_t extend(void) {
    int64_t sum = 0;
    for (int i = 0; i < 4096; i += 3) {
        sum += storage.words[i];
        sum ^= (int64_t)(uint8_t)storage.bytes[i * 2] << 7;
        sum -= storage.dwords[i / 2];
    }
    return sum;
}

static NOINLINE void narrow(void) {
    for (int i = 0; i < 2048; ++i) {
        storage.words[i] = (int16_t)(storage.dwords[i] >> 5);
        storage.bytes[i * 4 + 3] = (int8_t)storage.qwords[i / 2];
    }
}

// The high byte registers exist only without a REX prefix.
static NOINLINE uint64_t high_bytes(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 1024; ++i) {
        uint64_t value = 0;
        __asm__ volatile("movb (%1), %%ah\n\txorb %%ah, 1(%1)\n\taddb %%ah, %%al\n\tmov %%eax, %k0"
                         : "=r"(value)
                         : "r"(storage.bytes + i * 5)
                         : "rax", "memory", "cc");
        sum += value & 0xff00;
    }
    return sum;
}

int program(void) {
    as_bytes();
    write_number("extended", (uint64_t)extend());
    narrow();
    write_number("high", high_bytes());
    write_number("again", (uint64_t)extend());
    return 0;
}
