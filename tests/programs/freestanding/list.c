// Chases a linked list whose nodes are shuffled over 512 KiB.
#include "freestanding.h"

enum { kNodes = 8192 };
struct node {
    struct node* next;
    uint64_t payload[7];
};
static struct node nodes[kNodes];
static uint32_t order[kNodes];

static NOINLINE void shuffle(void) {
    uint64_t state = 88172645463325252u;
    for (uint32_t i = 0; i < kNodes; ++i) order[i] = i;
    for (uint32_t i = kNodes - 1; i > 0; --i) {
        uint32_t other = (uint32_t)(next_random(&state) % (i + 1));
        uint32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static NOINLINE void chain(void) {
    for (uint32_t i = 0; i < kNodes; ++i) {
        nodes[order[i]].next = &nodes[order[(i + 1) % kNodes]];
        nodes[order[i]].payload[i % 7] = i;
    }
}

static NOINLINE uint64_t chase(uint32_t steps) {
    uint64_t sum = 0;
    const struct node* at = &nodes[0];
    for (uint32_t i = 0; i < steps; ++i) {
        sum = sum * 31 + at->payload[i % 7];
        at = at->next;
    }
    return sum;
}

int program(void) {
    shuffle();
    chain();
    write_number("chased", chase(4 * kNodes));
    return 0;
}
