// Drives branches.S. No branches of its own but calls and the return.
#include "freestanding.h"

void loop_of_10(void);
void loop_of_60(void);
void alternate(void);
void period_of_5(void);
void cycle_targets(void);
void call_one(void);
void descend(int activations);
void skipped(void);

NOINLINE static void descend_once(void) {
    descend(20);
}

NOINLINE static void skip_twice(void) {
    skipped();
    skipped();
}

int program(void) {
    loop_of_10();
    loop_of_60();
    alternate();
    period_of_5();
    cycle_targets();
    call_one();
    descend_once();
    skip_twice();
    return 0;
}
