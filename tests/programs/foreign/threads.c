// Four threads, a child and another program, with known references of the function `work`: each
// turn reads and writes one cell. The argument says what to do.
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 4, kTurns = 100000, kTurnsOfChild = 1000 };
static long cells[kThreads];

__attribute__((noinline)) static void work(volatile long* cell, int turns) {
    for (int i = 0; i < turns; ++i) *cell += 1;
}

static void* run(void* number) {
    work(&cells[(long)number], kTurns);
    return NULL;
}

static jmp_buf before;

__attribute__((noinline)) static void leave(int calls) {
    if (calls > 0) leave(calls - 1);
    work(cells, 20);
    longjmp(before, 1);
}

static int execute(const char* program, const char* what) {
    execl(program, program, what, (char*)NULL);
    perror(program);
    return 9;
}

int main(int argc, char** argv) {
    const char what = argc > 1 ? argv[1][0] : 't';
    if (what == 'e') return execute(argv[0], "done");    // execute this program again
    if (what == 'n') return execute("/bin/true", "");    // execute a program of this machine
    if (what == 'm') return execute("/no/program", "");  // fail
    if (what == 'd') return 5;
    if (what == 'a') abort();
    if (what == 'l') {
        if (setjmp(before) == 0) leave(3);
        work(cells, 30);
        return 6;
    }
    pthread_t threads[kThreads];
    for (long i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, run, (void*)i);
    for (long i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    printf("%ld\n", cells[0] + cells[1] + cells[2] + cells[3]);
    fflush(stdout);
    if (fork() == 0) {
        work(cells, kTurnsOfChild);
        _exit(4);
    }
    int status;
    wait(&status);
    return WEXITSTATUS(status);
}
