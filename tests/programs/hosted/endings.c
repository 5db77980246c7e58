// Ways for a program to end.
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"

static void farewell(void) {
    puts("atexit ran");
}

static int normal(void) {
    atexit(farewell);
    puts("normal");
    return 0;
}
static int status_seven(void) {
    return 7;
}
static int status_255(void) {
    exit(-1);
}
static int immediate(void) {
    atexit(farewell);
    fflush(stdout);
    _exit(3);
}
static int segv(void) {
    puts("before");
    fflush(stdout);
    *(volatile int*)16 = 1;
    return 0;
}
static int read_fault(void) {
    char* page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return ((volatile char*)page)[5];
}
static int jump_nowhere(void) {
    void (*volatile nowhere)(void) = (void (*)(void))0x1000;
    nowhere();
    return 0;
}
static int aborted(void) {
    abort();
}
static int divide(void) {
    volatile int many = 100, zero = 0;
    return many / zero;
}
static int illegal(void) {
    __asm__ volatile("ud2");
    return 0;
}
static int trap(void) {
    __asm__ volatile("int3");
    return 0;
}
static int terminated(void) {
    return raise(SIGTERM);
}
static int killed(void) {
    return kill(getpid(), SIGKILL);
}
static int unwritten(void) {
    for (int i = 0; i < 100000; ++i) printf("line %d\n", i);
    fprintf(stderr, "errors too\n");
    return ferror(stdout) != 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"normal", normal},
        {"status_seven", status_seven},
        {"status_255", status_255},
        {"immediate", immediate},
        {"segv", segv},
        {"read_fault", read_fault},
        {"jump_nowhere", jump_nowhere},
        {"aborted", aborted},
        {"divide", divide},
        {"illegal", illegal},
        {"trap", trap},
        {"terminated", terminated},
        {"killed", killed},
        {"unwritten", unwritten},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
