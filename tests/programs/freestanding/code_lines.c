// Drives code_lines.S.
#include "freestanding.h"

void jump_along(void);
void two_reads(void);

int program(void) {
    jump_along();
    two_reads();
    return 0;
}
