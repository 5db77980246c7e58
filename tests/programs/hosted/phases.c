// Alternates between a phase that computes and one that walks through memory, some hundred times:
// what bursts must be spread over to see. "threads" does it in two threads, "children" in two
// processes.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 150, STEPS = 12000, CELLS = 1 << 16, STRIDE = 16 };

// With a branch that nothing predicts.
static uint64_t compute(uint64_t seed) {
    volatile unsigned odd = 0;
    for (int i = 0; i < STEPS; ++i) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        if (seed & 4) odd = odd + 1;
        seed ^= seed << 17;
    }
    return seed;
}

static uint64_t walk(uint32_t* cells, uint64_t sum) {
    for (int i = 0; i < STEPS; ++i) {
        uint32_t* cell = &cells[(unsigned)i * STRIDE % CELLS];
        sum += *cell;
        *cell = (uint32_t)sum;
    }
    return sum;
}

static void* work(void* cells) {
    uint64_t value = 1;
    for (int i = 0; i < ROUNDS; ++i) value = walk(cells, compute(value | 1));
    return NULL;
}

static uint32_t first[CELLS], second[CELLS];

int main(int argc, char** argv) {
    const char* how = argc > 1 ? argv[1] : "";
    pthread_t thread;
    pid_t child = -1;
    if (strcmp(how, "threads") == 0 && pthread_create(&thread, NULL, work, second) != 0) return 1;
    if (strcmp(how, "children") == 0) child = fork();
    work(first);
    if (child == 0) return 0;
    if (child > 0) waitpid(child, NULL, 0);
    if (strcmp(how, "threads") == 0) pthread_join(thread, NULL);
    printf("%u\n", first[0] & 1);
    return 0;
}
