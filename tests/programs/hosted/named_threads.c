// Threads whose work is known: each has a name, and stores as many numbers as it is told to.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t work_done, never;
volatile long cell;

static void store(long times) {
    for (long i = 0; i < times; ++i) cell = i;
}

// Ends by itself.
static void* run_named(void* times) {
    char name[16];
    snprintf(name, sizeof name, "ends-%ld", (long)times);
    pthread_setname_np(pthread_self(), name);
    store((long)times);
    return NULL;
}

// Is there until the process ends.
static void* run_and_stay(void* times) {
    store((long)times);
    sem_post(&work_done);
    sem_wait(&never);
    return NULL;
}

static void* run_unnamed(void* times) {
    store((long)times);
    return NULL;
}

int main(int argc, char** argv) {
    const int later = argc > 1 ? atoi(argv[1]) : 0;  // one after the other
    pthread_t thread;
    sem_init(&work_done, 0, 0);
    sem_init(&never, 0, 0);
    for (long i = 1; i <= 2; ++i) {
        pthread_create(&thread, NULL, run_named, (void*)(i * 1000));
        pthread_join(thread, NULL);
    }
    pthread_create(&thread, NULL, run_and_stay, (void*)5000L);
    pthread_setname_np(thread, "stays");
    sem_wait(&work_done);
    for (int i = 0; i < later; ++i) {
        pthread_create(&thread, NULL, run_unnamed, (void*)10L);
        pthread_join(thread, NULL);
    }
    store(500);
    return 0;
}
