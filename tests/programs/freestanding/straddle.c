// Accesses of every size at every offset, so that many touch two lines and some two pages.
#include "freestanding.h"

static unsigned char buffer[4 * 4096] __attribute__((aligned(4096)));

// The casts are the point: x86 allows what C's types do not.
typedef uint16_t __attribute__((may_alias, aligned(1))) loose16;
typedef uint32_t __attribute__((may_alias, aligned(1))) loose32;
typedef uint64_t __attribute__((may_alias, aligned(1))) loose64;

static NOINLINE void fill(void) {
    for (size_t i = 0; i < sizeof buffer; ++i) buffer[i] = (unsigned char)(i * 37);
}

static NOINLINE uint64_t read16(size_t stride) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 2 <= sizeof buffer; i += stride) sum += *(loose16*)(buffer + i);
    return sum;
}

static NOINLINE uint64_t read32(size_t stride) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 4 <= sizeof buffer; i += stride) sum += *(loose32*)(buffer + i);
    return sum;
}

static NOINLINE uint64_t read64(size_t stride) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 8 <= sizeof buffer; i += stride) sum ^= *(loose64*)(buffer + i);
    return sum;
}

static NOINLINE void write64(size_t stride) {
    for (size_t i = 0; i + 8 <= sizeof buffer; i += stride) *(loose64*)(buffer + i) = i;
}

static NOINLINE void modify64(size_t stride) {
    for (size_t i = 0; i + 8 <= sizeof buffer; i += stride) *(loose64*)(buffer + i) += stride;
}

// 16 bytes, read and written at odd addresses.
static NOINLINE void shift16bytes(size_t stride) {
    for (size_t i = 0; i + 32 <= sizeof buffer; i += stride) {
        __asm__ volatile("movdqu (%0), %%xmm0\n\tmovdqu %%xmm0, 13(%0)"
                         :
                         : "r"(buffer + i)
                         : "xmm0", "memory");
    }
}

int program(void) {
    fill();
    write_number("read16", read16(1) + read16(61));
    write_number("read32", read32(3) + read32(125));
    write_number("read64", read64(5) + read64(121));
    write64(59);
    modify64(7);
    shift16bytes(51);
    write_number("after", read64(1));
    return 0;
}
