// Two threads that write two members of one struct, and neighbours in an array of structs, beside
// lines that both only read, and lines that only one uses. With PARTED, as effective_address
// advises.
#include <assert.h>
#include <pthread.h>
#include <stdalign.h>

enum { kTimes = 10000, kLine = 64 };

#ifdef PARTED
#define LINE alignas(kLine)
#else
#define LINE
#endif

struct counters {
    volatile long limit;  // read by both
    LINE volatile long first;
    LINE volatile long second;
    long spare;
};
struct slot {
    LINE volatile long count;
    long spare;
};
#ifdef PARTED
static_assert(sizeof(struct counters) == 192 && sizeof(struct slot) == 64, "as foretold");
#endif

static alignas(kLine) struct counters counters = {.limit = kTimes};
static alignas(kLine) struct slot slots[2];
static alignas(kLine) volatile long innocent[kLine / 8];  // read by both
static alignas(kLine) volatile long own[2][kLine / 8];

static void* first(void* unused) {
    for (int i = 0; i < counters.limit; ++i) {
        counters.first = i;
        slots[0].count = innocent[0];
        own[0][1] = i;
    }
    return unused;
}

static void* second(void* unused) {
    for (int i = 0; i < counters.limit; ++i) {
        counters.second = i;
        slots[1].count = innocent[1];
        own[1][1] = i;
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, first, NULL) != 0) return 1;
    if (pthread_create(&threads[1], NULL, second, NULL) != 0) return 1;
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    return 0;
}
