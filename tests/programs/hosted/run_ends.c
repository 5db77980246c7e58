// Walks of one instruction that are cut short in every way: by the end of a process or a thread,
// another program, a fork, a region that is not collected, or a full trace buffer.
#include "assay/client.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

enum { kCells = 4096, kThreads = 3 };

static volatile uint64_t cells[kCells];

static __attribute__((noinline)) void walk(unsigned from, unsigned count) {
    for (unsigned i = from; i < from + count; ++i) cells[i % kCells];
}

// Each reference breaks the rhythm: one record for each.
static __attribute__((noinline)) void jump_about(unsigned count) {
    for (unsigned i = 0; i < count; ++i) cells[i * i % kCells];
}

static int killed(void) {
    walk(0, 1000);
    kill(getpid(), SIGKILL);
    return 1;
}

static int forks(void) {
    walk(0, 300);
    const pid_t child = fork();
    walk(300, 500);
    if (child == 0) {
        if (fork() == 0) {
            walk(800, 70);
            kill(getpid(), SIGKILL);
        }
        walk(800, 10);
        wait(NULL);
        _exit(0);
    }
    walk(800, 100);
    waitpid(child, NULL, 0);
    return 0;
}

static int vforks(void) {
    walk(0, 300);
    const pid_t child = vfork();
    if (child == 0) {
        walk(300, 20);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    walk(320, 50);
    return 0;
}

static int executes(void) {
    walk(0, 700);
    execl("/proc/self/exe", "run_ends", "killed", (char*)NULL);
    return 1;
}

static void* ends(void* number) {
    walk(0, 1000 + (unsigned)(intptr_t)number);
    if (number == NULL) pthread_exit(NULL);
    return NULL;
}
// One after the other, which use the same memory of the driver, and all at once.
static int threads_end(void) {
    pthread_t threads[kThreads];
    for (int together = 0; together < 2; ++together)
        for (intptr_t i = 0; i < kThreads; ++i) {
            walk(0, 10);
            if (pthread_create(&threads[i], NULL, ends, (void*)i) != 0) return 1;
            if (!together) pthread_join(threads[i], NULL);
        }
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    return 0;
}

static sem_t ready;
static void* waits(void* unused) {
    walk(0, 600);
    sem_post(&ready);
    for (;;) pause();
    return unused;
}
// Two of them never end by themselves, one is cancelled, and the process takes the others with it.
static int threads_are_ended(void) {
    pthread_t threads[kThreads];
    sem_init(&ready, 0, 0);
    for (int i = 0; i < kThreads; ++i)
        if (pthread_create(&threads[i], NULL, waits, NULL) != 0) return 1;
    for (int i = 0; i < kThreads; ++i) sem_wait(&ready);
    pthread_cancel(threads[0]);
    pthread_join(threads[0], NULL);
    walk(0, 50);
    _exit(0);
}

// A walk that goes on where the last collected one has ended, and one that does not.
static int markers(void) {
    for (unsigned i = 0; i < 20; ++i) {
        assay_start_collecting();
        walk(i * 50, 50);
        assay_stop_collecting();
        if (i % 2 == 0) walk(7, 30);
    }
    return 0;
}

// The walk is as long as ever while records bring a buffer to its end somewhere within.
static int buffers(void) {
    for (unsigned i = 0; i < 300; ++i) {
        walk(0, 200);
        jump_about(200 + i);
    }
    return 0;
}

// Until it is killed, with the number of rounds so far in a file that is named by $PROGRESS.
static __attribute__((noinline)) void advance(volatile uint64_t* rounds) {
    for (uint64_t i = 1;; ++i) {
        cells[i % kCells];
        *rounds = i;
    }
}
static int advances(void) {
    const int file = open(getenv("PROGRESS"), O_RDWR);
    uint64_t* const shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) return 1;
    shared[1] = (uint64_t)getpid();
    advance(shared);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases_of_walks[] = {
        {"killed", killed},           {"forks", forks},
        {"vforks", vforks},           {"executes", executes},
        {"threads_end", threads_end}, {"threads_are_ended", threads_are_ended},
        {"markers", markers},         {"buffers", buffers},
        {"advances", advances},
    };
    return run_case(cases_of_walks, sizeof cases_of_walks / sizeof *cases_of_walks, argc, argv);
}
