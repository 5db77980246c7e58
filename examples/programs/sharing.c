/* Two threads count, each with a counter of its own. Both counters are in one cache line. */
#include <pthread.h>
#include <stdio.h>

static struct { long first, second; } counters __attribute__((aligned(64)));

static void* count_first(void* unused) {
    for (int i = 0; i < 100000; ++i) ++*(volatile long*)&counters.first;
    return unused;
}

static void* count_second(void* unused) {
    for (int i = 0; i < 100000; ++i) ++*(volatile long*)&counters.second;
    return unused;
}

int main(void) {
    pthread_t first, second;
    if (pthread_create(&first, NULL, count_first, NULL)) return 1;
    if (pthread_create(&second, NULL, count_second, NULL)) return 1;
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    printf("%ld\n", counters.first + counters.second);
    return 0;
}
