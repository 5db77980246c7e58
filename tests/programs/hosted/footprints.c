// How much of each cache line is used: for tests that know the numbers on paper.
#include "assay/client.h"

#include <pthread.h>
#include <stdint.h>

#include "cases.h"

enum { LINE = 64, LINES = 1000 };

// Nothing else is in their lines.
static _Alignas(4096) char memory[4][LINES * LINE];

// Reads so many bytes of each line, four at a time, and makes no other reference.
static void touch(const char* start, int lines, int bytes) {
    for (int line = 0; line < lines; ++line)
        for (int i = 0; i < bytes; i += 4) (void)*(const volatile int*)(start + line * LINE + i);
}

// --- Arrays of structures of which a part is used: a section each.
static int structures(void) {
    static const struct {
        const char* name;
        int bytes;
    } walks[] = {{"walk 4", 4}, {"walk 8", 8}, {"walk 16", 16}, {"walk 64", 64}};
    for (int i = 0; i < 4; ++i) {
        assay_begin_phase(walks[i].name);
        touch(memory[i], LINES, walks[i].bytes);
        assay_end_phase(walks[i].name);
    }
    return 0;
}

// --- Two lines that a direct-mapped cache of 4 KiB has one place for.
static void alternate(int times) {
    for (int i = 0; i < times; ++i) {
        (void)*(const volatile int*)(memory[0]);
        (void)*(const volatile long*)(memory[0] + 4096);
    }
}
static int double_reads(void) {
    assay_begin_phase("double");
    alternate(100);
    assay_end_phase("double");
    return 0;
}

// --- Two arenas, of two chunks and one, and what is in none; then memory that goes from one to the
// other. In the order of the reports.
static int arenas(void) {
    const int kept = 32;
    assay_register_region(memory[0], 100 * LINE, "shop", "orders");
    assay_register_region(memory[1], 100 * LINE, "shop", "orders");
    assay_register_region(memory[2], 100 * LINE, "stock", "items");
    touch(memory[0], 100, 8);
    touch(memory[1], 100, 16);
    touch(memory[2], 100 + kept, 64);  // 32 lines behind the arena
    assay_unregister_region(memory[1]);
    touch(memory[1] + 100 * LINE, kept, 4);
    assay_register_region(memory[1] + 200 * LINE, 10 * LINE, "stock", "items");
    touch(memory[1] + 200 * LINE, 10, 4);
    return 0;
}

// --- Sections in one another, three times.
static int sections(void) {
    for (int step = 1; step <= 3; ++step) {
        assay_begin_phase("step");
        touch(memory[step], 100 * step, 4);
        assay_begin_phase("inner");
        touch(memory[0] + 100 * step * LINE, 10, 8);
        assay_end_phase("inner");
        assay_end_phase("step");
    }
    touch(memory[0] + 500 * LINE, 1, 4);  // in none
    assay_end_phase("step");              // has not begun
    assay_begin_phase("open");            // does not end
    touch(memory[0] + 501 * LINE, 1, 4);
    return 0;
}

// --- A section in itself, four deep.
static void descend(int depth) {
    assay_begin_phase("level");
    touch(memory[depth], 100, 8);
    if (depth != 0) descend(depth - 1);
    assay_end_phase("level");
}
static int recursion(void) {
    descend(3);
    return 0;
}

// --- Threads, one after the other.
static void* touch_some(void* argument) {
    const long number = (long)(intptr_t)argument;
    assay_begin_phase(number == 1 ? "one" : "two");
    touch(memory[number], 100 * (int)number, 16 * (int)number);
    assay_end_phase(number == 1 ? "one" : "two");
    return NULL;
}
static int threads(void) {
    for (intptr_t number = 1; number <= 2; ++number) {
        pthread_t thread;
        pthread_create(&thread, NULL, touch_some, (void*)number);
        pthread_join(thread, NULL);
    }
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"structures", structures}, {"double_reads", double_reads}, {"arenas", arenas},
        {"sections", sections},     {"recursion", recursion},       {"threads", threads},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
