// Two threads with a function each, which they are told of by a pointer; with an argument, also a
// process of its own.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sum;

__attribute__((noinline)) static void read_all(void) {
    for (int i = 0; i < 3000; ++i) sum += i;
}

__attribute__((noinline)) static void write_all(void) {
    for (int i = 0; i < 1000; ++i) sum = i;
}

static void (*volatile task)(void) = read_all;

static void* run(void* name) {
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 20; ++i) task();
    return NULL;
}

int main(int count, char** words) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, "reader");
    pthread_join(thread, NULL);
    task = write_all;
    pthread_create(&thread, NULL, run, "writer");
    pthread_join(thread, NULL);
    if (count > 1 && fork() == 0) {
        execl(words[0], words[0], NULL);
        _exit(1);
    }
    wait(NULL);
    printf("%d\n", sum);
    return 0;
}
