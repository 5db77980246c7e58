// Drives repeat.S: zero, one and many iterations, found early, at the end, and not at all.
#include "freestanding.h"

void copy_bytes(void* to, const void* from, size_t count);
void copy_quads(void* to, const void* from, size_t count);
void copy_backwards(void* to, const void* from, size_t count);
void fill_dwords(void* to, uint64_t value, size_t count);
size_t compare_bytes(const void* a, const void* b, size_t count);
size_t scan_bytes(const void* in, uint64_t value, size_t count);
size_t skip_words(const void* in, uint64_t value, size_t count);
uint64_t single_steps(void* to, const void* from, size_t count);

static unsigned char from[8192] __attribute__((aligned(64)));
static unsigned char to[8192] __attribute__((aligned(64)));

int program(void) {
    for (size_t i = 0; i < sizeof from; ++i) from[i] = (unsigned char)(i * 13 | 1);
    const size_t counts[] = {0, 1, 2, 7, 63, 64, 500};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        size_t count = counts[i];
        copy_bytes(to + 3, from + 5, count);
        copy_quads(to + 64, from + 60, count);
        copy_backwards(to + 6000, from + 4000, count);
        fill_dwords(to + 1001, 0x01020304u + count, count);
        sum = sum * 31 + compare_bytes(to + 3, from + 5, count);    // equal or not
        sum = sum * 31 + compare_bytes(from + 9, from + 9, count);  // never differs
        sum = sum * 31 + scan_bytes(from, from[40], count);         // found early
        sum = sum * 31 + scan_bytes(from, 0, count);                // never found
        if (count > 0) sum = sum * 31 + scan_bytes(from, from[count - 1], count);
        sum = sum * 31 + skip_words(to + 7000, 0, count);
        sum = sum * 31 + single_steps(to + 2000, from + 77, count) - (uint64_t)(uintptr_t)from;
    }
    write_number("sum", sum);
    return 0;
}
