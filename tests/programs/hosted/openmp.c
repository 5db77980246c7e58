// OpenMP: what its runtime does with threads, as programs use it.
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

#include "cases.h"

enum { COUNT = 200000 };

static uint64_t scramble(uint64_t value) {
    for (int i = 0; i < 5; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
    return value >> 20;
}

static int reduction(void) {
    uint64_t sum = 0, all = 0;
#pragma omp parallel for reduction(+ : sum) reduction(^ : all)
    for (uint64_t i = 0; i < COUNT; ++i) {
        sum += scramble(i);
        all ^= scramble(i);
    }
    printf("%llx %llx\n", (unsigned long long)sum, (unsigned long long)all);
    return 0;
}

static int schedules(void) {
    uint64_t* values = calloc(COUNT, sizeof *values);
    uint64_t digest = 0;
#pragma omp parallel
    {
#pragma omp for schedule(static, 7)
        for (size_t i = 0; i < COUNT; ++i) values[i] = scramble(i);
#pragma omp for schedule(dynamic, 100)
        for (size_t i = 0; i < COUNT; ++i) values[i] += scramble(values[i]);
#pragma omp for schedule(guided)
        for (size_t i = 0; i < COUNT; ++i) values[i] ^= scramble(values[i]);
    }
    for (size_t i = 0; i < COUNT; ++i) digest = digest * 31 + values[i];
    free(values);
    printf("%llx\n", (unsigned long long)digest);
    return 0;
}

static unsigned fibonacci(unsigned n) {
    unsigned left, right;
    if (n < 2) return n;
#pragma omp task shared(left) if (n > 10)
    left = fibonacci(n - 1);
#pragma omp task shared(right) if (n > 10)
    right = fibonacci(n - 2);
#pragma omp taskwait
    return left + right;
}
static int tasks(void) {
    unsigned result = 0;
#pragma omp parallel
#pragma omp single
    result = fibonacci(20);
    printf("%u\n", result);
    return 0;
}

static int synchronisation(void) {
    uint64_t in_order = 0;
    int criticals = 0, atomics = 0, late = 0, met = 0;
#pragma omp parallel num_threads(4)
    {
#pragma omp for ordered schedule(dynamic)
        for (int i = 0; i < 500; ++i) {
#pragma omp atomic
            ++atomics;
#pragma omp critical
            ++criticals;
#pragma omp ordered
            in_order = in_order * 31 + (uint64_t)i;
        }
#pragma omp atomic
        ++met;
#pragma omp barrier
        if (met != omp_get_num_threads()) {
#pragma omp atomic
            ++late;
        }
    }
    printf("%llx %d %d %d\n", (unsigned long long)in_order, criticals, atomics, late);
    return 0;
}

// Many teams, one after another and within each other.
static int teams(void) {
    int sum = 0;
    omp_set_max_active_levels(2);
    for (int round = 0; round < 50; ++round) {
#pragma omp parallel num_threads(3) reduction(+ : sum)
        {
            int inner = 0;
#pragma omp parallel num_threads(2) reduction(+ : inner)
            inner += omp_get_thread_num() + 1;
            sum += inner * (omp_get_thread_num() + 1);
        }
    }
    printf("%d\n", sum);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"reduction", reduction}, {"schedules", schedules},
        {"tasks", tasks},         {"synchronisation", synchronisation},
        {"teams", teams},
    };
    omp_set_dynamic(0);
    omp_set_num_threads(4);  // whatever the machine has
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
