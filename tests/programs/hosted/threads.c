// Threads: started in every way, sharing memory, waiting for one another, with storage of their
// own, and as parents of processes.
#include "threads.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "cases.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

static void* add_locked(void* number) {
    for (long i = 0; i < 10000; ++i) {
        pthread_mutex_lock(&lock);
        total += i + (long)number;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
static int mutex(void) {
    run_in_threads(2, add_locked);
    printf("%ld\n", total);
    return 0;
}

static atomic_long counter;
static void* add_atomically(void* number) {
    for (long i = 0; i < 100000; ++i) atomic_fetch_add(&counter, (long)number);
    return NULL;
}
static int atomic_counter(void) {
    run_in_threads(4, add_atomically);
    printf("%ld\n", counter);
    return 0;
}

// Both wait without a system call, so that only the kernel's scheduler lets the other run.
static atomic_int spinning_turn;
static void* spin_for_turn(void* number) {
    for (int i = 0; i < 20; ++i) {
        while (atomic_load(&spinning_turn) % 2 != (int)(intptr_t)number) {
        }
        atomic_fetch_add(&spinning_turn, 1);
    }
    return NULL;
}
static int spinning(void) {
    run_in_threads(2, spin_for_turn);
    printf("%d turns\n", spinning_turn);
    return 0;
}

static atomic_int futex_turn;
static void* wait_for_turn(void* number) {
    for (int i = 0; i < 1000; ++i) {
        int now;
        while ((now = atomic_load(&futex_turn)) % 2 != (int)(intptr_t)number) {
            syscall(SYS_futex, &futex_turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
        }
        atomic_fetch_add(&futex_turn, 1);
        syscall(SYS_futex, &futex_turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    return NULL;
}
static int futex(void) {
    run_in_threads(2, wait_for_turn);
    printf("%d turns\n", futex_turn);
    return 0;
}

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uintptr_t queue[3];
static size_t queued;
static void* produce(void* number) {
    for (uintptr_t i = 1; i <= 500; ++i) {
        pthread_mutex_lock(&lock);
        while (queued == sizeof queue / sizeof queue[0]) pthread_cond_wait(&changed, &lock);
        queue[queued++] = i * ((uintptr_t)number + 1);
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
static void* consume(void* ignored) {
    (void)ignored;
    uintptr_t sum = 0;
    for (int i = 0; i < 500; ++i) {
        pthread_mutex_lock(&lock);
        while (queued == 0) pthread_cond_wait(&changed, &lock);
        sum += queue[--queued];
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return (void*)sum;
}
static void* produce_or_consume(void* number) {
    return (uintptr_t)number % 2 == 0 ? produce(number) : consume(number);
}
static int condition(void) {
    printf("%lu\n", (unsigned long)run_in_threads(6, produce_or_consume));
    return 0;
}

static int together, rounds;
static pthread_barrier_t barrier;
static atomic_int arrived;
static void* meet(void* ignored) {
    (void)ignored;
    uintptr_t wrong = 0;
    for (int round = 1; round <= rounds; ++round) {
        atomic_fetch_add(&arrived, 1);
        pthread_barrier_wait(&barrier);
        wrong += arrived != round * together;
        pthread_barrier_wait(&barrier);
    }
    return (void*)wrong;
}
static int meet_in_threads(int count, int times) {
    together = count;
    rounds = times;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    printf("%lu wrong\n", (unsigned long)run_in_threads((size_t)count, meet));
    return 0;
}
static int many_at_once(void) {
    return meet_in_threads(100, 20);
}
static int thousands_at_once(void) {
    return meet_in_threads(3000, 1);
}

static void* twice(void* number) {
    return (void*)(2 * (uintptr_t)number);
}
static int many_short(void) {
    uintptr_t sum = 0;
    for (int i = 0; i < 500; ++i) sum += run_in_threads(4, twice);
    printf("%lu\n", (unsigned long)sum);
    return 0;
}

// All meet the same code for the first time at the same time.
static int by_digest(const void* left, const void* right) {
    const uint64_t a = *(const uint64_t*)left * 31, b = *(const uint64_t*)right * 31;
    return a < b ? -1 : a > b;
}
static void* work_through_libc(void* ignored) {
    (void)ignored;
    uint64_t values[200], digest = 0;
    char text[64];
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < 200; ++i) {
        snprintf(text, sizeof text, "%zu.%zx", i * 7919, i);
        values[i] = (uint64_t)(strtod(text, NULL) * 1000) * 0x9e3779b97f4a7c15u;
    }
    qsort(values, 200, sizeof values[0], by_digest);
    for (size_t i = 0; i < 200; ++i) digest = digest * 31 + values[i];
    return (void*)(digest >> 8);
}
static int same_code(void) {
    pthread_barrier_init(&barrier, NULL, 8);
    printf("%lx\n", (unsigned long)run_in_threads(8, work_through_libc));
    return 0;
}

static __thread int with_value = 5;
static __thread int without_value;
static void* change_own(void* number) {
    uintptr_t wrong = with_value != 5 || without_value != 0;
    for (int i = 0; i < 1000; ++i) {
        with_value += (int)(intptr_t)number;
        without_value -= (int)(intptr_t)number;
        if (i % 100 == 0) sched_yield();
        wrong += with_value + without_value != 5;
    }
    return (void*)wrong;
}
static int thread_local_storage(void) {
    with_value = 77;
    printf("%lu wrong, ", (unsigned long)run_in_threads(8, change_own));
    printf("%d %d\n", with_value, without_value);
    return 0;
}

static pthread_key_t key;
static atomic_long destroyed;
static void destroy(void* value) {
    atomic_fetch_add(&destroyed, (long)value);
}
static void* set_specific(void* number) {
    pthread_setspecific(key, (void*)((uintptr_t)number + 1));
    sched_yield();
    return (void*)(uintptr_t)((uintptr_t)pthread_getspecific(key) != (uintptr_t)number + 1);
}
static int specific_data(void) {
    pthread_key_create(&key, destroy);
    printf("%lu wrong, ", (unsigned long)run_in_threads(10, set_specific));
    printf("%ld destroyed\n", destroyed);
    return 0;
}

static size_t count_tasks(void) {
    size_t count = 0;
    DIR* tasks = opendir("/proc/self/task");
    for (const struct dirent* entry; (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}
static void* name_oneself(void* number) {
    char path[64], name[16], found[32] = "";
    snprintf(name, sizeof name, "worker %lu", (unsigned long)(uintptr_t)number);
    pthread_setname_np(pthread_self(), name);
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", gettid());
    FILE* file = fopen(path, "r");
    if (file == NULL || fgets(found, sizeof found, file) == NULL) return (void*)100;
    fclose(file);
    pthread_barrier_wait(&barrier);  // nobody has left
    const size_t tasks = count_tasks();
    pthread_barrier_wait(&barrier);
    found[strlen(found) - 1] = '\0';
    return (void*)(uintptr_t)(gettid() == getpid() || strcmp(found, name) != 0 || tasks != 4);
}
static int identities(void) {
    pthread_barrier_init(&barrier, NULL, 3);
    printf("%d %zu, ", gettid() == getpid(), count_tasks());
    printf("%lu wrong\n", (unsigned long)run_in_threads(3, name_oneself));
    return 0;
}

// The smallest stack that there may be, in memory of the program's own.
static void* write_on_stack(void* number) {
    char text[64];
    snprintf(text, sizeof text, "%lu", (unsigned long)(uintptr_t)number * 11);
    return (void*)strtoul(text, NULL, 10);
}
static int small_stack(void) {
    const size_t size = (size_t)PTHREAD_STACK_MIN;
    char* stack = aligned_alloc(4096, size);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, stack, size) != 0) return 1;
    uintptr_t sum = 0;
    for (uintptr_t i = 0; i < 50; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, write_on_stack, (void*)i) != 0) return 1;
        sum += (uintptr_t)join(thread);
    }
    printf("%lu\n", (unsigned long)sum);
    return 0;
}

// clone(2) without libc's help: the thread has its creator's fs base, and its end is told by
// CLONE_CHILD_CLEARTID alone.
static int add_in_clone(void* number) {
    atomic_fetch_add(&counter, (long)number);
    return 0;
}
static int raw_clone(void) {
    static char stack[65536] __attribute__((aligned(64)));
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                      CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    for (uintptr_t i = 1; i <= 50; ++i) {
        static _Atomic pid_t alive;
        alive = -1;
        if (clone(add_in_clone, stack + sizeof stack, flags, (void*)i, &alive, NULL, &alive) < 0) {
            return 1;
        }
        for (pid_t task; (task = alive) != 0;) {
            syscall(SYS_futex, &alive, FUTEX_WAIT, task, NULL, NULL, 0);
        }
    }
    printf("%ld\n", counter);
    return 0;
}

// A context that is left on one thread and goes on on another.
static ucontext_t callers[2], wandering;
static int steps;
static void wander(void) {
    for (;;) {
        ++steps;
        swapcontext(&wandering, &callers[(steps - 1) % 2]);
    }
}
static void* resume(void* number) {
    const int self = (int)(intptr_t)number;
    for (int i = 0; i < 100; ++i) {
        while (atomic_load(&futex_turn) % 2 != self) sched_yield();
        swapcontext(&callers[self], &wandering);
        atomic_fetch_add(&futex_turn, 1);
    }
    return NULL;
}
static int wandering_context(void) {
    getcontext(&wandering);
    wandering.uc_stack.ss_size = 65536;
    wandering.uc_stack.ss_sp = malloc(wandering.uc_stack.ss_size);
    makecontext(&wandering, wander, 0);
    run_in_threads(2, resume);
    printf("%d steps\n", steps);
    return 0;
}

// Memory that one thread maps, another uses and a third unmaps.
static _Atomic(unsigned char*) handed_over;
static void* map_or_unmap(void* number) {
    uintptr_t sum = 0;
    for (int i = 0; i < 200; ++i) {
        unsigned char* mapped;
        if ((uintptr_t)number == 0) {
            mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            mapped[5000] = (unsigned char)i;
            while (handed_over != NULL) sched_yield();
            handed_over = mapped;
        } else {
            while ((mapped = handed_over) == NULL) sched_yield();
            sum += mapped[5000];
            munmap(mapped, 8192);
            handed_over = NULL;
        }
    }
    return (void*)sum;
}
static int shared_mappings(void) {
    printf("%lu\n", (unsigned long)run_in_threads(2, map_or_unmap));
    return 0;
}

static uintptr_t status_of(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 10000;
    return (uintptr_t)WEXITSTATUS(status);
}
static void* fork_often(void* number) {
    uintptr_t sum = 0;
    for (int i = 0; i < 10; ++i) {
        const pid_t child = fork();
        if (child == 0) _exit((int)(intptr_t)number + (gettid() == getpid() ? 1 : 100));
        sum += status_of(child);
    }
    return (void*)sum;
}
static int forks(void) {
    printf("%lu\n", (unsigned long)run_in_threads(4, fork_often));
    return 0;
}

// A child of a thread has one thread, and can start others.
static int fork_with_threads(void) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        run_in_threads(3, add_locked);
        while (count_tasks() != 1) {  // one that has been joined can be there a little longer
        }
        printf("one task, %ld\n", total);
        fflush(stdout);
        _exit(4);
    }
    printf("status %lu\n", (unsigned long)status_of(child));
    return 0;
}

static void* run_commands(void* number) {
    uintptr_t sum = 0;
    for (int i = 0; i < 5; ++i) {
        char command[64], line[64] = "";
        snprintf(command, sizeof command, "echo %lu", (unsigned long)(uintptr_t)number * 10);
        FILE* from = popen(command, "r");
        if (from == NULL || fgets(line, sizeof line, from) == NULL) return (void*)10000;
        sum += strtoul(line, NULL, 10);
        if (pclose(from) != 0) return (void*)10000;
    }
    return (void*)sum;
}
static int commands(void) {
    printf("%lu\n", (unsigned long)run_in_threads(4, run_commands));
    return 0;
}

// All threads change their user: libc asks them to by a signal of its own.
static void* wait_for_a_second(void* started) {
    *(volatile int*)started = 1;
    sleep(1);  // ends early if a signal has a handler
    return NULL;
}
static int change_user(void) {
    volatile int started = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_a_second, (void*)&started);
    while (!started) {
    }
    printf("%d ", setuid(getuid()));
    printf("%d ", setgid(getgid()));
    printf("%d\n", seteuid(geteuid()));
    pthread_join(thread, NULL);
    return 0;
}

static void* nothing(void* unused) {
    return unused;
}
// Threads that cannot be started leave nothing behind.
static int refused(void) {
    struct rlimit limit = {0};
    const uid_t nobody = 65534;
    if (getuid() == 0 && setuid(nobody) != 0) return 1;  // the limit is not for root
    getrlimit(RLIMIT_NPROC, &limit);
    const rlim_t most = limit.rlim_cur;
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_NPROC, &limit);
    pthread_t thread;
    int failures = 0;
    for (int i = 0; i < 4200; ++i)
        failures += pthread_create(&thread, NULL, nothing, NULL) == EAGAIN;
    limit.rlim_cur = most;
    setrlimit(RLIMIT_NPROC, &limit);
    printf("%d %d\n", failures, pthread_create(&thread, NULL, nothing, NULL));
    return 0;
}

static pthread_barrier_t three;
static pid_t numbers[4];
static atomic_int may_end;
static void* tell_number(void* index) {
    numbers[(uintptr_t)index] = gettid();
    pthread_barrier_wait(&three);
    return NULL;
}
static void* tell_number_and_stay(void* index) {
    tell_number(index);
    while (!may_end) usleep(1000);
    return NULL;
}
// The kernel uses the number of a thread that has ended for a later one: here, if it may be told
// to, at once.
static void set_next_number(pid_t number) {
    FILE* last = fopen("/proc/sys/kernel/ns_last_pid", "w");
    if (last == NULL) return;
    fprintf(last, "%d", number - 1);
    fclose(last);
}
static int numbers_used_again(void) {
    for (int i = 0; i < 9; ++i) {
        pthread_barrier_init(&three, NULL, 3);
        run_in_threads(3, tell_number);
        set_next_number(numbers[i % 3]);
        pthread_barrier_init(&three, NULL, 1);
        may_end = 0;
        const pthread_t thread = start(tell_number_and_stay, (void*)3);
        const pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, NULL, 0);
        may_end = 1;
        join(thread);
    }
    puts("done");
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"mutex", mutex},
        {"atomic_counter", atomic_counter},
        {"spinning", spinning},
        {"futex", futex},
        {"condition", condition},
        {"many_at_once", many_at_once},
        {"thousands_at_once", thousands_at_once},
        {"many_short", many_short},
        {"same_code", same_code},
        {"thread_local_storage", thread_local_storage},
        {"specific_data", specific_data},
        {"identities", identities},
        {"small_stack", small_stack},
        {"raw_clone", raw_clone},
        {"wandering_context", wandering_context},
        {"shared_mappings", shared_mappings},
        {"forks", forks},
        {"fork_with_threads", fork_with_threads},
        {"commands", commands},
        {"change_user", change_user},
        {"refused", refused},
        {"numbers_used_again", numbers_used_again},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
