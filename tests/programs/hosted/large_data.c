// A position-independent program with more data than fits beside the driver's code cache.
#include "cases.h"

#include <stdint.h>
#include <unistd.h>

enum { kBytes = 1 << 30 };
static volatile char data[kBytes];

static int both_ends(void) {
    data[0] = 1;
    data[kBytes - 1] = 2;
    printf("%d\n", data[0] + data[kBytes - 1]);
    return 0;
}

// The program break follows the data, and grows.
static int program_break(void) {
    enum { kMore = 64 << 20 };
    char* begin = sbrk(kMore);
    if (begin == (char*)-1) return 1;
    begin[kMore - 1] = 3;
    printf("%d %d\n", (uintptr_t)begin > (uintptr_t)data, begin[kMore - 1]);
    return 0;
}

static int executed(void) {
    fflush(stdout);
    execl("/proc/self/exe", "large_data", "both_ends", (char*)0);
    return 1;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"both_ends", both_ends}, {"program_break", program_break}, {"executed", executed}};
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
