// What a program can see of its surroundings must be what it sees natively.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

static int arguments_and_environment(void) {
    extern char** environ;
    size_t count = 0;
    while (environ[count] != NULL) puts(environ[count++]);
    printf("%zu variables\n", count);
    return 0;
}

static int own_name(void) {
    char path[4096] = "";
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return 1;
    printf("%s\n%s\n", path, (const char*)getauxval(AT_EXECFN));
    printf("%d %d\n", getauxval(AT_PAGESZ) == 4096, getauxval(AT_RANDOM) != 0);
    return 0;
}

// Open descriptors: only those that the caller passed on.
static int descriptors(void) {
    for (int number = 0; number < 256; ++number) {
        if (fcntl(number, F_GETFD) >= 0) printf("%d ", number);
    }
    int next = open("/dev/null", O_RDONLY);
    printf("next %d\n", next);
    return 0;
}

static int heap(void) {
    char* before = sbrk(0);
    char* block = sbrk(100000);
    memset(block, 1, 100000);
    char* after = sbrk(0);
    int back = brk(before);  // before anything else allocates
    printf("%d %d %d\n", block == before, after - before == 100000, back);
    return 0;
}

static int clocks(void) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < 1000; ++i) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec < start.tv_sec) return 1;
    }
    printf("%d\n", time(NULL) > 1600000000);
    return 0;
}

static int mappings(void) {
    char* first = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    first[4096] = 'a';
    munmap(first, 4096);
    char* moved = mremap(first + 4096, 2 * 4096, 8 * 4096, MREMAP_MAYMOVE);
    printf("%c\n", moved[0]);
    char* exact = mmap(moved, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    printf("%d %d\n", exact == moved, exact[0]);
    return 0;
}

// Where things are: of interest to test_levels.py, since natively addresses are random.
static int addresses(void) {
    extern char** environ;
    static char of_program;
    char on_stack;
    void* large = malloc(1 << 20);
    void* mapping = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%p %p %p %p\n", (void*)&on_stack, (void*)environ, (void*)environ[0], (void*)environ[1]);
    printf("%p %p %p %p\n", (void*)&of_program, (void*)stdout, large, mapping);
    printf("%p %p\n", sbrk(0), (void*)getauxval(AT_EXECFN));
    return 0;
}

static void* where_a_thread_is(void* result) {
    char on_stack;
    printf("%p %p\n", (void*)&on_stack, malloc(100));
    return result;
}

// In threads, one after another.
static int addresses_of_threads(void) {
    for (int i = 0; i < 3; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, where_a_thread_is, NULL) != 0) return 1;
        pthread_join(thread, NULL);
    }
    return 0;
}

// Code that the program writes, runs, changes, and runs again.
static int generated_code(void) {
    unsigned char* code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const unsigned char answer[] = {0xb8, 0, 0, 0, 0, 0xc3};  // mov $n, %eax; ret
    memcpy(code, answer, sizeof answer);
    int (*function)(void);
    memcpy(&function, &code, sizeof function);
    int sum = 0;
    for (int i = 0; i < 10; ++i) {
        code[1] = (unsigned char)i;
        sum = sum * 3 + function();
    }
    printf("%d\n", sum);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"arguments_and_environment", arguments_and_environment},
        {"own_name", own_name},
        {"descriptors", descriptors},
        {"heap", heap},
        {"clocks", clocks},
        {"mappings", mappings},
        {"addresses", addresses},
        {"addresses_of_threads", addresses_of_threads},
        {"generated_code", generated_code},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
