// What GCC's sanitizers look for, each if asked for; without an argument nothing of it. At its end
// LeakSanitizer stops all threads, which have the only pointers to what they have allocated.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kThreads = 3 };

static pthread_barrier_t all_ready;
static __thread char* own;
static long raced;

static void* keep(void* number) {
    own = malloc(10);
    char* volatile on_stack = malloc(20);
    register char* in_register __asm__("r14") = malloc(30);
    pthread_barrier_wait(&all_ready);
    while (on_stack != NULL && in_register != NULL) {
        __asm__ volatile("pause" : "+r"(in_register));
    }
    return number;
}

static void* add(void* number) {
    ++raced;
    return number;
}

static void race(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
    const char* wanted = argc > 1 ? argv[1] : "";
    char* volatile block = malloc(10);
    puts(wanted);
    fflush(stdout);
    if (strcmp(wanted, "race") == 0) race();
    if (strcmp(wanted, "beyond") == 0) block[10] = 1;
    if (strcmp(wanted, "leak") == 0) return block = NULL, 0;
    free(block);
    if (strcmp(wanted, "race") == 0) return 0;
    pthread_barrier_init(&all_ready, NULL, kThreads + 1);
    for (int i = 0; i < kThreads; ++i) {
        pthread_t thread;
        pthread_create(&thread, NULL, keep, NULL);
    }
    pthread_barrier_wait(&all_ready);
    return 0;
}
