// Two threads that meet in the middle.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

static void* add(void* count) {
    for (long i = 0; i < *(const long*)count; ++i) {
        pthread_mutex_lock(&lock);
        total += i;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    long count = 10000;
    for (int i = 0; i < 2; ++i) {
        if (pthread_create(&threads[i], NULL, add, &count) != 0) return 1;
    }
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    printf("%ld\n", total);
    return 0;
}
