// Loops that wait for different reasons. Prints the cycles that the processor's time-stamp counter
// measures for each. bench/estimate compares them with the estimate of the cache profiler.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

enum { CELLS = 1 << 22, TURNS = 1 << 20 };
static uint64_t *cells, *order;
static uint64_t random_state = 1;

static uint64_t random_number(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

__attribute__((noinline)) uint64_t add_in_order(void) {
    uint64_t sum = 0;
    for (int i = 0; i < TURNS; ++i) sum += cells[i];
    return sum;
}

__attribute__((noinline)) uint64_t add_anywhere(void) {
    uint64_t sum = 0;
    for (int i = 0; i < TURNS; ++i) sum += cells[order[i]];
    return sum;
}

__attribute__((noinline)) uint64_t follow_a_chain(void) {
    uint64_t at = 0;
    for (int i = 0; i < TURNS; ++i) at = cells[at];
    return at;
}

__attribute__((noinline)) uint64_t toss_coins(void) {
    volatile uint64_t heads = 0;
    for (int i = 0; i < TURNS; ++i)
        if (order[i] & 1) heads = heads + 1;
    return heads;
}

__attribute__((noinline)) uint64_t multiply(void) {
    uint64_t product = 3;
    for (int i = 0; i < TURNS; ++i) product = product * product + 1;
    return product;
}

// One cycle through all cells in a random order (Sattolo's algorithm).
static void link_cells(void) {
    for (uint64_t i = 0; i < CELLS; ++i) cells[i] = i;
    for (uint64_t i = CELLS - 1; i > 0; --i) {
        const uint64_t j = random_number() % i, kept = cells[i];
        cells[i] = cells[j];
        cells[j] = kept;
    }
}

int main(void) {
    cells = malloc(CELLS * sizeof *cells);
    order = malloc(TURNS * sizeof *order);
    if (!cells || !order) return 1;
    link_cells();
    for (int i = 0; i < TURNS; ++i) order[i] = random_number() % CELLS;
    static const struct {
        const char* name;
        uint64_t (*run)(void);
    } kLoops[] = {{"multiply", multiply},
                  {"toss_coins", toss_coins},
                  {"add_in_order", add_in_order},
                  {"add_anywhere", add_anywhere},
                  {"follow_a_chain", follow_a_chain}};
    uint64_t sum = 0;
    for (unsigned i = 0; i < sizeof kLoops / sizeof *kLoops; ++i) {
        uint64_t best = UINT64_MAX;
        for (int round = 0; round < 3; ++round) {
            const uint64_t begin = __rdtsc();
            sum += kLoops[i].run();
            const uint64_t took = __rdtsc() - begin;
            if (took < best) best = took;
        }
        printf("%s %.2f\n", kLoops[i].name, (double)best / TURNS);
    }
    return sum == 0;
}
