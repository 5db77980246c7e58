// Drives stream.S.
#include "freestanding.h"

void walk_4(void);
void walk_24(void);
void walk_calls(void);
void walk_string(void);
void walk_branches(void);

int program(void) {
    walk_4();
    walk_24();
    walk_calls();
    walk_string();
    walk_branches();
    return 0;
}
