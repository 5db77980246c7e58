// A program with several named cases: `program NAME` runs one of them.
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct test_case {
    const char* name;
    int (*run)(void);
};

// What a call has returned, and whether it has failed for the reason that it should.
static inline void show_error(long result, int reason) {
    printf("%ld %d\n", result, errno == reason);
}

static inline int run_case(const struct test_case* cases, size_t count, int argc, char** argv) {
    for (size_t i = 0; i < count; ++i) {
        if (argc == 2 && strcmp(cases[i].name, argv[1]) == 0) return cases[i].run();
    }
    for (size_t i = 0; i < count; ++i) puts(cases[i].name);
    return argc == 1 ? 0 : 2;
}
