// What can be told to be profiled alone: between markers, and in functions.
#include "assay/client.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>

#include "cases.h"

// A hundred times the same two instructions.
static void loop(void) {
    __asm__ volatile(
        "mov $100, %%ecx\n"
        "1: dec %%ecx\n"
        "jnz 1b\n" ::
            : "ecx", "cc");
}

// The second loop is not collected.
static int markers(void) {
    assay_start_collecting();
    loop();
    assay_stop_collecting();
    loop();
    assay_start_collecting();
    loop();
    assay_stop_collecting();
    printf("profiled: %d\n", assay_is_profiling());
    return 0;
}

// So often that a translation for each time would take long.
static int often(void) {
    for (int i = 0; i < 100000; ++i) {
        assay_start_collecting();
        loop();
        assay_stop_collecting();
        loop();
    }
    return 0;
}

static int names(void) {
    static char arena[4096];
    assay_begin_phase("setting up");
    assay_register_region(arena, sizeof arena, "tests", "an arena");
    assay_unregister_region(arena);
    assay_end_phase("setting up");
    printf("known: %d\n", assay_marker(12345, 0, 0, 0, 0, 0));
    return 0;
}

// --- Functions.

static jmp_buf outside;

// What only this function calls.
static void inside(void) {
    loop();
}
static void descend(int depth, int jumps) {
    inside();
    if (depth > 0)
        descend(depth - 1, jumps);
    else if (jumps)
        longjmp(outside, 1);
    __asm__ volatile("");
}
static void after(void) {
    loop();
}
static int recursion(void) {
    for (int i = 0; i < 10; ++i) {
        descend(4, 0);
        after();
    }
    return 0;
}
static int long_jump(void) {
    for (volatile int i = 0; i < 10; ++i) {
        if (setjmp(outside) == 0) descend(4, 1);
        after();
    }
    return 0;
}

// --- Threads.

static atomic_ulong rounds;
static atomic_int ends;
static void work_alone(void) {
    while (!atomic_load_explicit(&ends, memory_order_relaxed))
        atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed);
}
static void* work(void* unused) {
    work_alone();
    return unused;
}
static void wait_for(unsigned long count) {
    const unsigned long until = atomic_load(&rounds) + count;
    while (atomic_load(&rounds) < until) sched_yield();
}
// The second thread is in a loop, which it does not leave, whenever collecting begins or ends.
static int threads(void) {
    pthread_t other;
    pthread_create(&other, NULL, work, NULL);
    wait_for(1000000);
    assay_start_collecting();
    const unsigned long before = atomic_load(&rounds);
    wait_for(1000000);
    assay_stop_collecting();
    const unsigned long collected = atomic_load(&rounds) - before;
    wait_for(20000000);
    atomic_store(&ends, 1);
    pthread_join(other, NULL);
    printf("%lu\n", collected);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"markers", markers},     {"often", often},       {"names", names},
        {"recursion", recursion}, {"longjmp", long_jump}, {"threads", threads},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
