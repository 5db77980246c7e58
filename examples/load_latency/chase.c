/* Follows pointers through 4 kB, which stay in the first-level cache, and through 64 MB, where
 * nearly every step misses it. */
#include <stdint.h>
#include <stdlib.h>

enum { NEAR = 64, FAR = 1 << 20, STEPS = 20000 };

struct line {
    struct line* next;
    char rest[56];
};

static struct line* follow_near(struct line* at) {
    for (int i = 0; i < STEPS; ++i) at = at->next;
    return at;
}
static struct line* follow_far(struct line* at) {
    for (int i = 0; i < STEPS; ++i) at = at->next;
    return at;
}

/* Links all `count` lines to one cycle. The step is an odd number of lines that no prefetcher
 * follows. */
static struct line* make_cycle(uint32_t count, uint32_t step) {
    struct line* lines = aligned_alloc(64, count * sizeof *lines);
    if (!lines) abort();
    for (uint32_t i = 0; i < count; ++i) lines[i].next = &lines[(i + step) % count];
    return lines;
}

int main(void) {
    struct line* near_end = follow_near(make_cycle(NEAR, 1));
    struct line* far_end = follow_far(make_cycle(FAR, 1664525));
    return near_end == far_end;
}
