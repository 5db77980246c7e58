/* A struct of twelve members of which two are hot: how often each is read and written is known. The
 * list is linked in an order that is not that of the array. */
#include <stdio.h>
#include <stdlib.h>

enum { kNodes = 1000, kRounds = 10 };

struct place {
    int row, column;
};

struct node {
    long key;          /* read kNodes * kRounds times */
    struct node* next; /* the same */
    char name[24];
    double weight;
    unsigned int visited : 1, kept : 1, rank : 6;
    short small;
    struct place where; /* row: written kNodes times */
    long cold[2];
    void* user;
    union {
        long number;
        double real;
    } value;
    float half;
    int last; /* written kNodes times */
};

__attribute__((noinline)) void link_nodes(struct node* nodes) {
    for (int i = 0; i < kNodes; ++i) {
        nodes[i].where.row = i;
        nodes[i].last = 1;
    }
}

__attribute__((noinline)) long walk(const struct node* node) {
    long sum = 0;
    for (; node != NULL; node = node->next) sum += node->key;
    return sum;
}

int main(void) {
    struct node* nodes = calloc(kNodes, sizeof *nodes);
    if (nodes == NULL) return 1;
    link_nodes(nodes);
    for (int i = 0; i + 1 < kNodes; ++i) nodes[i * 7 % kNodes].next = &nodes[(i + 1) * 7 % kNodes];
    long sum = 0;
    for (int round = 0; round < kRounds; ++round) sum += walk(nodes);
    printf("%ld\n", sum);
    free(nodes);
    return 0;
}
