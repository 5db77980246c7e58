/* Uses four lines of a set again and again, and scans eight new lines of the set in each of 100
 * rounds, in a cache of 64 sets and lines of 64 bytes. */
#include <assay/client.h>

#include <stdint.h>

enum { ROUNDS = 100, HOT = 4, SCANNED = 8, PAGE = 4096, LINE = 64, SETS = 64 };

static volatile char pages[(HOT + ROUNDS * SCANNED) * PAGE] __attribute__((aligned(4096)));

static void use_hot(volatile char* set) {
    for (int twice = 0; twice < 2; ++twice)
        for (int i = 0; i < HOT; ++i) (void)set[i * PAGE];
}
static void scan(volatile char* set) {
    for (int i = 0; i < SCANNED; ++i) (void)set[i * PAGE];
}

int main(void) {
    /* The stack uses another set. */
    char here = 0;
    volatile char* set = pages + ((uintptr_t)&here / LINE + SETS / 2) % SETS * LINE;
    assay_start_collecting(); /* the cache is empty here */
    for (int round = 0; round < ROUNDS; ++round) {
        use_hot(set);
        scan(set + (HOT + round * SCANNED) * PAGE);
    }
    return 0;
}
