// Starting threads and waiting for them, for the programs that test with them.
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static inline pthread_t start(void* (*body)(void*), void* argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0) abort();
    return thread;
}

static inline void* join(pthread_t thread) {
    void* result = NULL;
    if (pthread_join(thread, &result) != 0) abort();
    return result;
}

// Runs the body in so many threads, each of which is told its number, and adds up the results.
static inline uintptr_t run_in_threads(size_t count, void* (*body)(void*)) {
    pthread_t* threads = malloc(count * sizeof *threads);
    if (threads == NULL) abort();
    uintptr_t sum = 0;
    for (size_t i = 0; i < count; ++i) threads[i] = start(body, (void*)i);
    for (size_t i = 0; i < count; ++i) sum += (uintptr_t)join(threads[i]);
    free(threads);
    return sum;
}
