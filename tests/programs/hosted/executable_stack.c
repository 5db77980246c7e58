// A program that asks for an executable stack (PT_GNU_STACK), and runs code on it.
#include <signal.h>
#include <sys/time.h>

#include "cases.h"
#include "machine_code.h"
#include "threads.h"

static int of_main(void) {
    printf("%d %d\n", call_on_stack(20), call_on_stack(10));
    return 0;
}

// The C library gives its threads such stacks, too.
static void* call_in_thread(void* number) {
    return (void*)(uintptr_t)call_on_stack((int)(intptr_t)number);
}
static int of_threads(void) {
    printf("%lu\n", (unsigned long)run_in_threads(4, call_in_thread));
    return 0;
}

// A signal's handler has its frame on the stack, and so where code is, too.
static volatile sig_atomic_t ticks;
static void count(int number) {
    ticks += number == SIGPROF;
}
static int interrupted(void) {
    const struct itimerval often = {{0, 1000}, {0, 1000}};
    signal(SIGPROF, count);
    setitimer(ITIMER_PROF, &often, NULL);
    int sum = 0;
    for (int i = 0; i < 12000; ++i) {
        sum += call_on_stack(2);
        for (volatile int k = 0; k < 30000; ++k) {
        }
    }
    printf("%d %d\n", sum, ticks > 0);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"of_main", of_main}, {"of_threads", of_threads}, {"interrupted", interrupted}};
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
