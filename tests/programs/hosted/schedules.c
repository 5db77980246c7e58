// Threads that meet in the ways that there are, and share data: one way for each word given. What
// is printed is the same however they take turns, but for "order", which shows how they do.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 4, kRounds = 400, kCells = 8192 };

static long shared[kCells];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// References all over the shared data, from where the thread is in it.
static long touch(long place, int count) {
    long sum = 0;
    for (int i = 0; i < count; ++i) {
        place = (place * 1103515245 + 12345) & 0x7fffffff;
        sum += ++shared[place % kCells];
    }
    return sum;
}

static void run_all(void* (*run)(void*)) {
    pthread_t threads[kThreads];
    for (long i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, run, (void*)i);
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

// --- A mutex.

static long counted;

static void* count_locked(void* argument) {
    for (int i = 0; i < kRounds; ++i) {
        pthread_mutex_lock(&mutex);
        ++counted;
        touch((long)argument + i, 20);
        pthread_mutex_unlock(&mutex);
        touch((long)argument * i, 50);
    }
    return NULL;
}

static void with_mutex(void) {
    run_all(count_locked);
    printf("mutex %ld\n", counted);
}

// --- Condition variables: producers and consumers.

enum { kRoom = 3 };
static int queue[kRoom], queued, produced, consumed;
static long consumed_sum;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;

static void* produce_or_consume(void* argument) {
    const int produces = (long)argument % 2 == 0;
    for (;;) {
        pthread_mutex_lock(&mutex);
        if ((produces ? produced : consumed) == kRounds) break;
        ++*(produces ? &produced : &consumed);
        if (produces) {
            const int item = produced;
            while (queued == kRoom) pthread_cond_wait(&not_full, &mutex);
            queue[queued++] = item;
            pthread_cond_signal(&not_empty);
        } else {
            while (queued == 0) pthread_cond_wait(&not_empty, &mutex);
            consumed_sum += queue[--queued];
            pthread_cond_signal(&not_full);
        }
        pthread_mutex_unlock(&mutex);
        touch((long)argument, 30);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void with_conditions(void) {
    run_all(produce_or_consume);
    printf("conditions %ld\n", consumed_sum);
}

// All wait for one that wakes them all.
static int opened;
static pthread_cond_t open_now = PTHREAD_COND_INITIALIZER;

static void* wait_until_open(void* argument) {
    pthread_mutex_lock(&mutex);
    if ((long)argument == kThreads - 1) {
        opened = 1;
        pthread_cond_broadcast(&open_now);
    }
    const struct timespec far = {.tv_sec = 4102444800};  // the year 2100: no clock is read
    while (!opened) pthread_cond_timedwait(&open_now, &mutex, &far);
    pthread_mutex_unlock(&mutex);
    touch((long)argument, 3000);
    return NULL;
}

static void with_broadcast(void) {
    run_all(wait_until_open);
    printf("broadcast %d\n", opened);
}

// --- A barrier.

static pthread_barrier_t barrier;
static long last_ones;

static void* pass_barrier(void* argument) {
    for (int i = 0; i < kRounds / 4; ++i) {
        touch((long)argument + i, 40 * (1 + (int)(long)argument));
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ++last_ones;
    }
    return NULL;
}

static void with_barrier(void) {
    pthread_barrier_init(&barrier, NULL, kThreads);
    run_all(pass_barrier);
    printf("barrier %ld\n", last_ones);
}

// --- Spinning, as libgomp does, and with sched_yield(2).

static atomic_int arrived, generation;

static void spin_barrier(int yields) {
    const int before = atomic_load(&generation);
    if (atomic_fetch_add(&arrived, 1) == kThreads - 1) {
        atomic_store(&arrived, 0);
        atomic_fetch_add(&generation, 1);
        return;
    }
    while (atomic_load(&generation) == before) {
        if (yields)
            sched_yield();
        else
            __builtin_ia32_pause();
    }
}

static void* spin(void* argument) {
    for (int i = 0; i < 50; ++i) {
        touch((long)argument, 100);
        spin_barrier(0);
    }
    return NULL;
}

static void* spin_and_yield(void* argument) {
    for (int i = 0; i < 50; ++i) {
        touch((long)argument, 100);
        spin_barrier(1);
    }
    return NULL;
}

static void by_spinning(void) {
    run_all(spin);
    printf("spinning %d\n", atomic_load(&generation));
}

static void by_yielding(void) {
    atomic_store(&generation, 0);
    run_all(spin_and_yield);
    printf("yielding %d\n", atomic_load(&generation));
}

// --- Threads that begin threads, and threads that nobody waits for.

static void* begin_others(void* argument) {
    const long depth = (long)argument;
    touch(depth, 200);
    if (depth == 0) return (void*)1;
    pthread_t left, right;
    pthread_create(&left, NULL, begin_others, (void*)(depth - 1));
    pthread_create(&right, NULL, begin_others, (void*)(depth - 1));
    void *from_left, *from_right;
    pthread_join(left, &from_left);
    pthread_join(right, &from_right);
    return (void*)((long)from_left + (long)from_right + 1);
}

static void with_tree(void) {
    printf("tree %ld\n", (long)begin_others((void*)4));
}

static sem_t ended;

static void* end_alone(void* argument) {
    touch((long)argument, 500);
    sem_post(&ended);
    return NULL;
}

static void with_detached(void) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sem_init(&ended, 0, 0);
    for (long i = 0; i < 20; ++i) {
        pthread_t thread;
        pthread_create(&thread, &detached, end_alone, (void*)i);
    }
    for (int i = 0; i < 20; ++i) sem_wait(&ended);
    puts("detached 20");
}

// --- Memory of each thread.

static _Thread_local long own[64];

static void* allocate(void* argument) {
    char* blocks[64] = {0};
    unsigned place = (unsigned)(long)argument + 1;
    for (int i = 0; i < kRounds * 4; ++i) {
        place = place * 1664525 + 1013904223;
        char** block = &blocks[place >> 26];
        free(*block);
        *block = malloc((place >> 16) % 3000 + 1);
        **block = (char)i;
        own[place >> 26] += (long)*block & 0xfff;
    }
    for (int i = 0; i < 64; ++i) free(blocks[i]);
    return NULL;
}

static void with_memory(void) {
    run_all(allocate);
    puts("memory");
}

// --- Readers and writers.

static pthread_rwlock_t many = PTHREAD_RWLOCK_INITIALIZER;
static long written;

static void* read_and_write(void* argument) {
    for (int i = 0; i < kRounds; ++i) {
        if ((i + (long)argument) % 8 == 0) {
            pthread_rwlock_wrlock(&many);
            ++written;
        } else {
            pthread_rwlock_rdlock(&many);
        }
        touch((long)argument + written, 10);
        pthread_rwlock_unlock(&many);
    }
    return NULL;
}

static void with_readers(void) {
    run_all(read_and_write);
    printf("readers %ld\n", written);
}

// --- A mutex whose owner ends.

static pthread_mutex_t robust;

static void* end_as_owner(void* unused) {
    pthread_mutex_lock(&robust);
    touch(1, 2000);
    return unused;
}

static void* wait_for_owner(void* unused) {
    const int result = pthread_mutex_lock(&robust);
    if (result == EOWNERDEAD) pthread_mutex_consistent(&robust);
    pthread_mutex_unlock(&robust);
    (void)unused;
    return (void*)(long)result;
}

static void with_robust_mutex(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_t owner, waits;
    pthread_create(&owner, NULL, end_as_owner, NULL);
    pthread_create(&waits, NULL, wait_for_owner, NULL);
    void* result;
    pthread_join(owner, NULL);
    pthread_join(waits, &result);
    printf("robust %d\n", (long)result == EOWNERDEAD || result == NULL);
}

// --- A mutex with priorities, which the kernel keeps.

static pthread_mutex_t inheriting;
static long inherited;

static void* count_inheriting(void* argument) {
    for (int i = 0; i < 100; ++i) {
        pthread_mutex_lock(&inheriting);
        ++inherited;
        touch((long)argument, 30);
        pthread_mutex_unlock(&inheriting);
    }
    return NULL;
}

static void with_priorities(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inheriting, &attributes);
    run_all(count_inheriting);
    printf("priorities %ld\n", inherited);
}

// --- Memory that a process shares with its child, whose futexes are the kernel's.

struct Between {
    sem_t to_child, to_parent;
    int value;
};

static void* count_between(void* argument) {
    struct Between* between = argument;
    for (int i = 0; i < 50; ++i) {
        sem_post(&between->to_child);
        sem_wait(&between->to_parent);
    }
    return NULL;
}

static void with_child(void) {
    struct Between* between =
        mmap(NULL, sizeof *between, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(&between->to_child, 1, 0);
    sem_init(&between->to_parent, 1, 0);
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 50; ++i) {
            sem_wait(&between->to_child);
            ++between->value;
            sem_post(&between->to_parent);
        }
        _exit(0);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, count_between, between);
    pthread_join(thread, NULL);
    waitpid(child, NULL, 0);
    printf("child %d\n", between->value);
}

// --- Pipes between threads, and sleep.

static int ends[2];

static void* write_slowly(void* unused) {
    for (char c = 'a'; c < 'f'; ++c) {
        usleep(2000);
        if (write(ends[1], &c, 1) != 1) abort();
    }
    close(ends[1]);
    return unused;
}

static void with_pipe(void) {
    if (pipe(ends) != 0) abort();
    pthread_t thread;
    pthread_create(&thread, NULL, write_slowly, NULL);
    char text[16] = "";
    size_t length = 0;
    for (ssize_t more; (more = read(ends[0], text + length, 1)) > 0;) length += (size_t)more;
    pthread_join(thread, NULL);
    printf("pipe %s\n", text);
}

// --- Times that pass, signals, and the end of one thread by another.

static void* wait_for_cancellation(void* unused) {
    sem_t never;
    sem_init(&never, 0, 0);
    sem_wait(&never);
    return unused;
}

static void handle(int number) {
    (void)number;
}

static void* wait_interrupted(void* result) {
    sem_t never;
    sem_init(&never, 0, 0);
    *(int*)result = sem_wait(&never) == -1 ? errno : 0;
    return NULL;
}

static void with_interruptions(void) {
    sem_t never;
    sem_init(&never, 0, 0);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 20 * 1000 * 1000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    const int timed_out = sem_timedwait(&never, &soon) == -1 && errno == ETIMEDOUT;

    pthread_t thread;
    void* result;
    pthread_create(&thread, NULL, wait_for_cancellation, NULL);
    usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, &result);

    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGUSR1, &action, NULL);
    int error = 0;
    pthread_create(&thread, NULL, wait_interrupted, &error);
    do {
        usleep(1000);
        pthread_kill(thread, SIGUSR1);
    } while (pthread_tryjoin_np(thread, NULL) == EBUSY);
    printf("interruptions %d %d %d\n", timed_out, result == PTHREAD_CANCELED, error == EINTR);
}

// --- The order itself: who takes a number after whom.

static char order[kThreads * 40 + 1];
static atomic_int taken;

static void* take_numbers(void* argument) {
    for (int i = 0; i < 40; ++i) {
        order[atomic_fetch_add(&taken, 1)] = (char)('a' + (long)argument);
        touch((long)argument, 300);
    }
    return NULL;
}

static void show_order(void) {
    run_all(take_numbers);
    printf("order %s\n", order);
}

// --- All wait for one another.

static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;

static void* lock_both(void* argument) {
    pthread_mutex_t* first = argument == NULL ? &mutex : &second;
    pthread_mutex_lock(first);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(first == &mutex ? &second : &mutex);
    return NULL;
}

static void in_deadlock(void) {
    pthread_t one, other;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&one, NULL, lock_both, NULL);
    pthread_create(&other, NULL, lock_both, &second);
    puts("deadlock");
    fflush(stdout);
    pthread_join(one, NULL);
}

static const struct {
    const char* name;
    void (*run)(void);
} kWays[] = {
    {"mutex", with_mutex},
    {"conditions", with_conditions},
    {"broadcast", with_broadcast},
    {"barrier", with_barrier},
    {"spinning", by_spinning},
    {"yielding", by_yielding},
    {"tree", with_tree},
    {"detached", with_detached},
    {"memory", with_memory},
    {"readers", with_readers},
    {"robust", with_robust_mutex},
    {"priorities", with_priorities},
    {"child", with_child},
    {"pipe", with_pipe},
    {"interruptions", with_interruptions},
    {"order", show_order},
    {"deadlock", in_deadlock},
};

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        for (size_t way = 0; way < sizeof kWays / sizeof *kWays; ++way)
            if (strcmp(argv[i], kWays[way].name) == 0) kWays[way].run();
    return 0;
}
