// A heap that grows, has a short spike at its highest, loses blocks, and shrinks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kTurns = 10, kNodes = 500, kSpike = 400000, kLost = 1000, kForgotten = 50000 };

struct node {
    struct node* next;
    char text[56];
};

__attribute__((noinline)) static struct node* grow(struct node* list) {
    for (int i = 0; i < kNodes; ++i) {
        struct node* node = malloc(sizeof *node);
        node->next = list;
        list = node;
    }
    return list;
}

static char* volatile kept;

__attribute__((noinline)) static char spike(void) {
    char* block = kept = malloc(kSpike);
    memset(block, 1, kSpike);
    const char last = block[kSpike - 1];
    free(block);
    return last;
}

__attribute__((noinline)) static void lose(void) {
    for (int i = 0; i < 100; ++i) {
        kept = malloc(kLost);
        kept[0] = 1;
    }
}

// Nothing ever refers to this block.
__attribute__((noinline)) static void forget(void) {
    kept = malloc(kForgotten);
}

int main(void) {
    struct node* list = NULL;
    int sum = 0;
    for (int i = 0; i < kTurns; ++i) {
        list = grow(list);
        if (i == kTurns - 1) sum += spike();
        if (i % 5 == 0) lose();
    }
    forget();
    while (list != NULL) {
        struct node* next = list->next;
        free(list);
        list = next;
    }
    printf("%d\n", sum);
    return 0;
}
