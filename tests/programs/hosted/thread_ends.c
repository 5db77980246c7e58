// Ways for a thread to end, and for a process with several of them.
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "filters.h"
#include "threads.h"

static sem_t ready;

static void farewell(void) {
    puts("atexit ran");
}

// What the other threads are doing meanwhile.
static void* spin(void* ignored) {
    (void)ignored;
    sem_post(&ready);
    for (volatile unsigned turns = 0;; ++turns) {
    }
    return NULL;
}
static void* sleep_forever(void* ignored) {
    (void)ignored;
    sem_post(&ready);
    for (;;) pause();
    return NULL;
}
static void start_others(void) {
    start(spin, NULL);
    start(sleep_forever, NULL);
    sem_wait(&ready);
    sem_wait(&ready);
}
// Leaves the end to the thread.
static int end_by(void* (*body)(void*)) {
    puts("before");
    fflush(stdout);
    start_others();
    join(start(body, NULL));
    return 1;
}

static int main_returns(void) {
    atexit(farewell);
    start_others();
    return 6;
}

static void* call_exit(void* ignored) {
    (void)ignored;
    exit(5);
}
static int exit_from_thread(void) {
    atexit(farewell);
    return end_by(call_exit);
}

static void* leave_at_once(void* ignored) {
    (void)ignored;
    _exit(4);
}
static int exit_group_from_thread(void) {
    atexit(farewell);
    return end_by(leave_at_once);
}

static void* touch_nothing(void* ignored) {
    (void)ignored;
    *(volatile int*)16 = 1;
    return NULL;
}
static int fault_in_thread(void) {
    return end_by(touch_nothing);
}

static void* call_abort(void* ignored) {
    (void)ignored;
    abort();
}
static int abort_in_thread(void) {
    return end_by(call_abort);
}

static void* terminate(void* ignored) {
    (void)ignored;
    kill(getpid(), SIGTERM);
    for (;;) pause();
    return NULL;
}
static int terminated_by_thread(void) {
    return end_by(terminate);
}

static void* kill_process(void* ignored) {
    (void)ignored;
    kill(getpid(), SIGKILL);
    for (;;) pause();
    return NULL;
}
static int killed_by_thread(void) {
    return end_by(kill_process);
}

static void* replace(void* ignored) {
    (void)ignored;
    execl("/bin/sh", "sh", "-c", "echo after; exit 8", (char*)NULL);
    return NULL;
}
static int exec_from_thread(void) {
    return end_by(replace);
}

static void* replace_by_missing(void* ignored) {
    (void)ignored;
    return (void*)(intptr_t)(execl("/nonexistent/missing", "missing", (char*)NULL) * -errno);
}
static int exec_fails_in_thread(void) {
    start_others();
    printf("%d\n", (int)(intptr_t)join(start(replace_by_missing, NULL)) == ENOENT);
    return 0;
}

static pthread_t main_thread;
static void* outlive_main(void* ignored) {
    (void)ignored;
    join(main_thread);
    puts("main has left");
    return NULL;
}
static int main_leaves(void) {
    main_thread = pthread_self();
    atexit(farewell);
    start(outlive_main, NULL);
    pthread_exit(NULL);
}

static void* exit_after_main(void* ignored) {
    outlive_main(ignored);
    exit(7);
}
static int main_leaves_first(void) {
    main_thread = pthread_self();
    start(exit_after_main, NULL);
    pthread_exit(NULL);
}

static void report(void* text) {
    puts(text);
}
static volatile int leaving = 1;
static void leave_from_within(int depth) {
    if (depth == 0) {
        if (leaving) pthread_exit((void*)33);
        return;
    }
    pthread_cleanup_push(report, depth % 2 == 0 ? "even" : "odd");
    leave_from_within(depth - 1);
    pthread_cleanup_pop(0);
}
static void* leave(void* depth) {
    leave_from_within((int)(intptr_t)depth);
    return NULL;
}
static int cleanup_handlers(void) {
    printf("%lu\n", (unsigned long)(uintptr_t)join(start(leave, (void*)4)));
    return 0;
}

static int cancel_in(void* (*body)(void*)) {
    for (int i = 0; i < 20; ++i) {
        pthread_t thread = start(body, NULL);
        sem_wait(&ready);
        pthread_cancel(thread);
        if (join(thread) != PTHREAD_CANCELED) return 1;
    }
    return 0;
}
static void* sleep_with_cleanup(void* ignored) {
    pthread_cleanup_push(report, "cleaned up");
    sleep_forever(ignored);
    pthread_cleanup_pop(0);
    return NULL;
}
static int cancelled_in_call(void) {
    return cancel_in(sleep_with_cleanup);
}

static void* test_often(void* ignored) {
    (void)ignored;
    pthread_cleanup_push(report, "cleaned up");
    sem_post(&ready);
    for (;;) pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}
static int cancelled_where_tested(void) {
    return cancel_in(test_often);
}

// The C library unwinds from within a signal handler that has interrupted the loop.
static void* spin_unprotected(void* ignored) {
    int type;
    pthread_cleanup_push(report, "cleaned up");
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    spin(ignored);
    pthread_cleanup_pop(0);
    return NULL;
}
static int cancelled_anywhere(void) {
    return cancel_in(spin_unprotected);
}

static pthread_mutex_t* make_robust(void) {
    pthread_mutex_t* mutex =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attributes);
    return mutex;
}
static int take_over(pthread_mutex_t* mutex) {
    printf("owner died: %d\n", pthread_mutex_lock(mutex) == EOWNERDEAD);
    printf("consistent: %d\n", pthread_mutex_consistent(mutex));
    printf("unlocked: %d\n", pthread_mutex_unlock(mutex));
    printf("again: %d\n", pthread_mutex_lock(mutex));
    return 0;
}
static void* lock_and_leave(void* mutex) {
    pthread_mutex_lock(mutex);
    return NULL;
}
static int robust_mutex(void) {
    pthread_mutex_t* mutex = make_robust();
    join(start(lock_and_leave, mutex));
    return take_over(mutex);
}
static void* lock_and_sleep(void* mutex) {
    pthread_mutex_lock(mutex);
    return sleep_forever(NULL);
}
// The new owner is waiting already, or about to, when the old one ends.
static int robust_mutex_wait(void) {
    pthread_mutex_t* mutex = make_robust();
    pthread_t owner = start(lock_and_sleep, mutex);
    sem_wait(&ready);
    pthread_cancel(owner);
    return take_over(mutex);
}
static int robust_mutex_of_process(void) {
    pthread_mutex_t* mutex = make_robust();
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        lock_and_leave(mutex);
        kill(getpid(), SIGKILL);
    }
    if (waitpid(child, &status, 0) != child) return 1;
    printf("signal %d\n", WTERMSIG(status));
    return take_over(mutex);
}

static atomic_int left;
static void* count_up(void* ignored) {
    (void)ignored;
    atomic_fetch_add(&left, 1);
    return NULL;
}
static void* count_and_leave(void* ignored) {
    pthread_detach(pthread_self());
    count_up(ignored);
    sem_post(&ready);
    return NULL;
}
static int detached(void) {
    for (int i = 0; i < 200; ++i) start(count_and_leave, NULL);
    for (int i = 0; i < 200; ++i) sem_wait(&ready);
    printf("%d\n", left);
    return 0;
}

// In a sandbox that permits only what libc needs to start threads and to wait for their ends.
static int filtered(void) {
    filter_call(SYS_set_tid_address, SECCOMP_RET_KILL_PROCESS);
    filter_call(SYS_arch_prctl, SECCOMP_RET_KILL_PROCESS);
    for (int i = 0; i < 200; ++i) {
        pthread_t threads[3];
        for (int t = 0; t < 3; ++t) threads[t] = start(count_up, NULL);
        for (int t = 0; t < 3; ++t) join(threads[t]);
    }
    printf("%d\n", left);
    return robust_mutex();
}

// Neither does it need to set a base.
static int without_arch_prctl(void) {
    filter_call(SYS_arch_prctl, SECCOMP_RET_ERRNO | EPERM);
    join(start(count_up, NULL));
    printf("%d\n", left);
    return 0;
}

static int join_times_out(void) {
    pthread_t thread = start(sleep_forever, NULL);
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec = 0;
    ++limit.tv_sec;
    printf("%d\n", pthread_timedjoin_np(thread, NULL, &limit) == ETIMEDOUT);
    return 0;
}

// exit(2) ends the thread that calls it and nothing else, also in the first thread.
static void wait_for_first(void) {
    char path[64], state[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    do {  // until it is a zombie: proc(5), field 3
        FILE* file = fopen(path, "r");
        if (file == NULL || fgets(state, sizeof state, file) == NULL) return;
        fclose(file);
    } while (strstr(state, ") Z ") == NULL);
    puts("first thread has left");
}
static void* wait_and_exit(void* ignored) {
    (void)ignored;
    wait_for_first();
    exit(9);
}
static int raw_exit(void) {
    start(wait_and_exit, NULL);
    syscall(SYS_exit, 3);
    return 1;
}

// The process has the status of the thread that ends last, or the first one's, as the kernel wants.
static void* wait_and_leave(void* ignored) {
    (void)ignored;
    wait_for_first();
    fflush(stdout);
    syscall(SYS_exit, 5);
    return NULL;
}
static int last_status(void) {
    start(wait_and_leave, NULL);
    syscall(SYS_exit, 3);
    return 1;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"main_returns", main_returns},
        {"exit_from_thread", exit_from_thread},
        {"exit_group_from_thread", exit_group_from_thread},
        {"fault_in_thread", fault_in_thread},
        {"abort_in_thread", abort_in_thread},
        {"terminated_by_thread", terminated_by_thread},
        {"killed_by_thread", killed_by_thread},
        {"exec_from_thread", exec_from_thread},
        {"exec_fails_in_thread", exec_fails_in_thread},
        {"main_leaves", main_leaves},
        {"main_leaves_first", main_leaves_first},
        {"cleanup_handlers", cleanup_handlers},
        {"cancelled_in_call", cancelled_in_call},
        {"cancelled_where_tested", cancelled_where_tested},
        {"cancelled_anywhere", cancelled_anywhere},
        {"robust_mutex", robust_mutex},
        {"robust_mutex_wait", robust_mutex_wait},
        {"robust_mutex_of_process", robust_mutex_of_process},
        {"detached", detached},
        {"filtered", filtered},
        {"without_arch_prctl", without_arch_prctl},
        {"join_times_out", join_times_out},
        {"raw_exit", raw_exit},
        {"last_status", last_status},
    };
    sem_init(&ready, 0, 0);
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
