// Signals in a program with several threads: sent to one of them, to any, by timers and by faults.
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "cases.h"
#include "threads.h"

enum { THREADS = 4 };

static sem_t ready;
static pthread_barrier_t barrier;
static atomic_int wrong;

static void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static sigset_t only(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}
static void change_mask(int how, int number) {
    const sigset_t set = only(number);
    pthread_sigmask(how, &set, NULL);
}

// --- Sent to one thread.

static __thread volatile sig_atomic_t own_signals;
static __thread volatile pid_t own_id;
static void count_own(int number, siginfo_t* info, void* context) {
    (void)context;
    if (own_id != gettid() || info->si_signo != number) ++wrong;
    ++own_signals;
}
static atomic_int told;
static void* receive(void* expected) {
    own_id = gettid();
    sem_post(&ready);
    while (own_signals < (int)(intptr_t)expected) {
    }
    atomic_fetch_add(&told, own_signals);
    return NULL;
}
static int directed(void) {
    pthread_t threads[THREADS];
    handle(SIGRTMIN, count_own, 0);
    for (intptr_t i = 0; i < THREADS; ++i) threads[i] = start(receive, (void*)(i * 50));
    for (int i = 0; i < THREADS; ++i) sem_wait(&ready);
    for (int i = 0; i < THREADS; ++i) {
        // Real-time signals queue: as many arrive as are sent.
        for (int k = 0; k < i * 50; ++k) pthread_kill(threads[i], SIGRTMIN);
    }
    for (int i = 0; i < THREADS; ++i) join(threads[i]);
    printf("%d signals, %d wrong\n", told, wrong);
    return 0;
}

// All at once, each to its neighbour, from within a computation.
static pthread_t ring[THREADS];
static void* send_around(void* number) {
    own_id = gettid();
    pthread_barrier_wait(&barrier);
    const pthread_t neighbour = ring[((uintptr_t)number + 1) % THREADS];
    for (int i = 0; i < 300; ++i) pthread_kill(neighbour, SIGRTMIN + 1);
    while (own_signals < 300) {
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}
static int storm(void) {
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    handle(SIGRTMIN + 1, count_own, SA_RESTART);
    for (uintptr_t i = 0; i < THREADS; ++i) ring[i] = start(send_around, (void*)i);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; ++i) join(ring[i]);
    printf("%d wrong\n", wrong);
    return 0;
}

// --- Stopping all threads, as garbage collectors do.

static atomic_int stopped;
static atomic_long progress;
static volatile sig_atomic_t finished;
static void resume(int number) {
    (void)number;
}
static void stop(int number, siginfo_t* info, void* context) {
    (void)number, (void)info, (void)context;
    sigset_t all_but_resume;
    sigfillset(&all_but_resume);
    sigdelset(&all_but_resume, SIGUSR2);
    const int error = errno;
    atomic_fetch_add(&stopped, 1);
    sem_post(&ready);
    sigsuspend(&all_but_resume);
    atomic_fetch_sub(&stopped, 1);
    sem_post(&ready);
    errno = error;
}
static void* make_progress(void* ignored) {
    (void)ignored;
    pthread_barrier_wait(&barrier);
    while (!finished) atomic_fetch_add(&progress, 1);
    return NULL;
}
static int stop_the_world(void) {
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);  // SIGUSR2 waits for sigsuspend
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGUSR2, resume);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; ++i) threads[i] = start(make_progress, NULL);
    pthread_barrier_wait(&barrier);
    for (int round = 0; round < 50; ++round) {
        for (int i = 0; i < THREADS; ++i) pthread_kill(threads[i], SIGUSR1);
        for (int i = 0; i < THREADS; ++i) sem_wait(&ready);
        const long before = progress;
        for (volatile int i = 0; i < 1000; ++i) {
        }
        wrong += stopped != THREADS || progress != before;
        for (int i = 0; i < THREADS; ++i) pthread_kill(threads[i], SIGUSR2);
        for (int i = 0; i < THREADS; ++i) sem_wait(&ready);
    }
    finished = 1;
    for (int i = 0; i < THREADS; ++i) join(threads[i]);
    printf("%d wrong\n", wrong);
    return 0;
}

// --- Sent to the process.

static void* wait_for_signals(void* ignored) {
    (void)ignored;
    const sigset_t set = only(SIGRTMIN);
    uintptr_t sum = 0;
    for (int i = 0; i < 100; ++i) {
        siginfo_t info;
        if (sigwaitinfo(&set, &info) != SIGRTMIN) return NULL;
        sum = sum * 3 + (uintptr_t)info.si_value.sival_int;
    }
    return (void*)sum;
}
static int waiting_thread(void) {
    change_mask(SIG_BLOCK, SIGRTMIN);  // inherited by the thread
    pthread_t thread = start(wait_for_signals, NULL);
    for (int i = 0; i < 100; ++i) sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
    printf("%lx\n", (unsigned long)(uintptr_t)join(thread));
    return 0;
}

static void* receive_alone(void* ignored) {
    change_mask(SIG_UNBLOCK, SIGUSR1);
    return receive(ignored);
}
static int only_thread_unblocked(void) {
    change_mask(SIG_BLOCK, SIGUSR1);
    handle(SIGUSR1, count_own, 0);
    pthread_t thread = start(receive_alone, (void*)1);
    sem_wait(&ready);
    kill(getpid(), SIGUSR1);
    join(thread);
    printf("%d signals, %d wrong\n", told, wrong);
    return 0;
}

// Pending for the process until one thread takes it; pending for one thread until it takes it.
static void* look_at_pending(void* ignored) {
    (void)ignored;
    sigset_t pending;
    sigpending(&pending);
    return (void*)(uintptr_t)(sigismember(&pending, SIGUSR1) * 2 + sigismember(&pending, SIGUSR2));
}
static int pending(void) {
    change_mask(SIG_BLOCK, SIGUSR1);
    change_mask(SIG_BLOCK, SIGUSR2);
    handle(SIGUSR1, count_own, 0);
    handle(SIGUSR2, count_own, 0);
    own_id = gettid();
    kill(getpid(), SIGUSR1);
    raise(SIGUSR2);
    printf("%lu %lu, ", (unsigned long)(uintptr_t)look_at_pending(NULL),
           (unsigned long)(uintptr_t)join(start(look_at_pending, NULL)));
    change_mask(SIG_UNBLOCK, SIGUSR1);
    change_mask(SIG_UNBLOCK, SIGUSR2);
    printf("%d signals, %d wrong\n", (int)own_signals, wrong);
    return 0;
}

static void* spin(void* ignored) {
    (void)ignored;
    sem_post(&ready);
    for (volatile unsigned turns = 0;; ++turns) {
    }
    return NULL;
}
static int default_action(void) {
    pthread_t thread = start(spin, NULL);
    sem_wait(&ready);
    puts("before");
    fflush(stdout);
    pthread_kill(thread, SIGTERM);  // ends the process, whichever thread it is for
    join(thread);
    return 0;
}

// --- Timers.

// Every tick interrupts one of several computations whose results must not change.
static void* compute(void* number) {
    uint64_t state = (uint64_t)(uintptr_t)number;
    double sum = 0;
    for (int i = 0; i < 3000000; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(state >> 40);
    }
    return (void*)(uintptr_t)((uint64_t)sum ^ state >> 20);
}
static atomic_int ticks;
static volatile double clobbered;
static void tick(int number, siginfo_t* info, void* context) {
    (void)number, (void)info, (void)context;
    for (int i = 0; i < 5; ++i) clobbered = clobbered * 0.5 + i;
    ++ticks;
}
static int ticks_for_any(void) {
    handle(SIGALRM, tick, SA_RESTART);
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    const uintptr_t sum = run_in_threads(THREADS, compute);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d %lx\n", ticks != 0, (unsigned long)sum);
    return 0;
}

static void count_own_tick(int number, siginfo_t* info, void* context) {
    if (info->si_code != SI_TIMER || info->si_value.sival_int != 17) ++wrong;
    count_own(number, info, context);
}
static void* compute_with_timer(void* number) {
    own_id = gettid();
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 2};
    event.sigev_value.sival_int = 17;
    event._sigev_un._tid = gettid();  // glibc 2.36 has no other name for it
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return NULL;
    const struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    timer_settime(timer, 0, &often, NULL);
    void* result = compute(number);
    while (own_signals < 3) {
    }
    timer_delete(timer);
    return result;
}
static int timers_of_threads(void) {
    handle(SIGRTMIN + 2, count_own_tick, SA_RESTART);
    printf("%lx, ", (unsigned long)run_in_threads(THREADS, compute_with_timer));
    printf("%d wrong\n", wrong);
    return 0;
}

static void note_expiry(union sigval value) {
    atomic_fetch_add(&told, value.sival_int);
    sem_post(&ready);
}
static int timer_starts_thread(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD};
    event.sigev_notify_function = note_expiry;
    event.sigev_value.sival_int = 7;
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return 1;
    const struct itimerspec once = {{0, 0}, {0, 1000000}};
    for (int i = 0; i < 5; ++i) {
        timer_settime(timer, 0, &once, NULL);
        sem_wait(&ready);
    }
    printf("%d\n", told);
    return 0;
}

// --- Faults.

// The handler puts another value into the register that held the bad address.
static void repair_address(int number, siginfo_t* info, void* context) {
    (void)number, (void)info;
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    registers[REG_RDI] += registers[REG_RBX];
    ++own_signals;
}
static uint64_t load_through(const uint64_t* address, uint64_t distance) {
    uint64_t value;
    __asm__ volatile("mov (%%rdi), %0" : "=&r"(value), "+D"(address) : "b"(distance) : "memory");
    return value;
}
static void* fault_often(void* number) {
    const uint64_t value = (uint64_t)(uintptr_t)number + 1;
    uintptr_t sum = 0;
    for (uint64_t i = 0; i < 1000; ++i) {
        const uintptr_t bad = 16 + i;
        sum += load_through((const uint64_t*)bad, (uintptr_t)&value - bad);
    }
    return (void*)(sum * 10000 + (uintptr_t)own_signals);
}
static int faults_in_threads(void) {
    handle(SIGSEGV, repair_address, 0);
    printf("%lu\n", (unsigned long)run_in_threads(THREADS, fault_often));
    return 0;
}

static __thread sigjmp_buf escape;
static void jump_out(int number, siginfo_t* info, void* context) {
    (void)info, (void)context;
    siglongjmp(escape, number);
}
static void* escape_often(void* number) {
    volatile uintptr_t sum = 0;
    for (volatile int i = 0; i < 300; ++i) {
        const int caught = sigsetjmp(escape, 1);
        if (caught != 0) {
            sum += (uintptr_t)caught;
        } else if ((i + (intptr_t)number) % 2 == 0) {
            *(volatile int*)8 = 1;
        } else {
            __asm__ volatile("ud2");
        }
    }
    return (void*)sum;
}
static int jumps_from_handlers(void) {
    handle(SIGSEGV, jump_out, 0);
    handle(SIGILL, jump_out, 0);
    printf("%lu\n", (unsigned long)run_in_threads(THREADS, escape_often));
    return 0;
}

// --- Stacks and calls.

// A loop of five instructions. The first one faults the tenth time.
__attribute__((noinline)) static void fault_in_loop(void) {
    long cell = 0, rounds = 0, nowhere = 0;
    __asm__ volatile(
        "lea %2, %%rax\n"
        "1: incq (%%rax)\n"
        "inc %0\n"
        "cmp $9, %0\n"
        "cmove %1, %%rax\n"
        "jmp 1b\n"
        : "+r"(rounds), "+r"(nowhere), "+m"(cell)
        :
        : "rax", "cc", "memory");
}
static void* loop_often(void* times) {
    for (volatile uintptr_t left = (uintptr_t)times; left > 0; --left)
        if (sigsetjmp(escape, 0) == 0) fault_in_loop();
    return NULL;
}
static int faults_in_loops(void) {
    handle(SIGSEGV, jump_out, SA_NODEFER);
    pthread_t thread = start(loop_often, (void*)30);
    loop_often((void*)20);
    pthread_join(thread, NULL);
    return 0;
}

static __thread uintptr_t stack_begin, stack_end;
static void look_where(int number, siginfo_t* info, void* context) {
    (void)info, (void)context;
    char local = 0;
    const uintptr_t here = (uintptr_t)&local;
    if (here < stack_begin || here >= stack_end) ++wrong;
    ++own_signals;
    if (number == SIGUSR1) raise(SIGUSR2);  // on the same stack, further down
}
static void* signal_on_own_stack(void* ignored) {
    (void)ignored;
    const size_t size = 65536;
    char* memory = malloc(size);
    const stack_t stack = {.ss_sp = memory, .ss_size = size};
    stack_t old;
    stack_begin = (uintptr_t)memory, stack_end = stack_begin + size;
    sigaltstack(&stack, &old);
    if ((old.ss_flags & SS_DISABLE) == 0) ++wrong;  // not inherited: sigaltstack(2)
    for (int i = 0; i < 100; ++i) raise(SIGUSR1);
    const stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    free(memory);
    return (void*)(uintptr_t)own_signals;
}
static int alternate_stacks(void) {
    static char of_main[65536];
    const stack_t stack = {.ss_sp = of_main, .ss_size = sizeof of_main};
    sigaltstack(&stack, NULL);
    handle(SIGUSR1, look_where, SA_ONSTACK);
    handle(SIGUSR2, look_where, SA_ONSTACK);
    printf("%lu signals, ", (unsigned long)run_in_threads(THREADS, signal_on_own_stack));
    printf("%d wrong\n", wrong);
    return 0;
}

// Whether it has got into the call is seen in proc(5), which calls the state of a sleeper S.
static void wait_until_asleep(pid_t thread) {
    char path[64], state[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    do {
        state[0] = '\0';
        FILE* file = fopen(path, "r");
        if (file == NULL || fgets(state, sizeof state, file) == NULL) return;
        fclose(file);
    } while (strstr(state, ") S ") == NULL);
}
static int ends[2];
static atomic_int reader;
static void* read_byte(void* ignored) {
    (void)ignored;
    char byte = 0;
    own_id = gettid();
    reader = own_id;
    const ssize_t got = read(ends[0], &byte, 1);
    return (void*)(intptr_t)(got == 1 ? byte : -errno);
}
static pthread_t read_in_thread(int flags) {
    if (pipe(ends) != 0) abort();
    handle(SIGUSR1, count_own, flags);
    pthread_t thread = start(read_byte, NULL);
    while (reader == 0) {
    }
    wait_until_asleep(reader);
    return thread;
}
static void print_read(void* read) {
    const intptr_t result = (intptr_t)read;
    printf("%d %d, %d wrong\n", result == 'x', result == -EINTR, wrong);
}
static int interrupted_call(void) {
    pthread_t thread = read_in_thread(0);
    void* result;
    do {  // more than once, should it have slept before the call
        pthread_kill(thread, SIGUSR1);
        usleep(1000);
    } while (pthread_tryjoin_np(thread, &result) != 0);
    print_read(result);
    return 0;
}
static int restarted_call(void) {
    pthread_t thread = read_in_thread(SA_RESTART);
    pthread_kill(thread, SIGUSR1);
    if (write(ends[1], "x", 1) != 1) return 1;
    print_read(join(thread));
    return 0;
}

static void* wait_for_semaphore(void* semaphore) {
    own_id = gettid();
    reader = own_id;
    while (sem_wait(semaphore) != 0) {
        if (errno != EINTR) return NULL;
    }
    return (void*)(uintptr_t)own_signals;
}
static int interrupted_semaphore(void) {
    sem_t never;
    sem_init(&never, 0, 0);
    handle(SIGUSR1, count_own, 0);
    pthread_t thread = start(wait_for_semaphore, &never);
    while (reader == 0) {
    }
    wait_until_asleep(reader);
    pthread_kill(thread, SIGUSR1);
    sem_post(&never);
    printf("%lu signal, %d wrong\n", (unsigned long)(uintptr_t)join(thread), wrong);
    return 0;
}

// What a handler changes in one thread's mask stays that thread's.
static void* mask_of_thread(void* ignored) {
    (void)ignored;
    sigset_t mask;
    raise(SIGUSR1);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return (void*)(uintptr_t)(sigismember(&mask, SIGHUP) * 4 + sigismember(&mask, SIGUSR1) * 2 +
                              sigismember(&mask, SIGUSR2));
}
static void block_on_return(int number, siginfo_t* info, void* context) {
    (void)number, (void)info;
    sigaddset(&((ucontext_t*)context)->uc_sigmask, SIGUSR2);
}
static int masks(void) {
    handle(SIGUSR1, block_on_return, 0);
    change_mask(SIG_BLOCK, SIGHUP);
    const uintptr_t of_threads = run_in_threads(THREADS, mask_of_thread);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    printf("%lu, %d %d\n", (unsigned long)of_threads, sigismember(&mask, SIGHUP),
           sigismember(&mask, SIGUSR2));
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"directed", directed},
        {"storm", storm},
        {"stop_the_world", stop_the_world},
        {"waiting_thread", waiting_thread},
        {"only_thread_unblocked", only_thread_unblocked},
        {"pending", pending},
        {"default_action", default_action},
        {"ticks_for_any", ticks_for_any},
        {"timers_of_threads", timers_of_threads},
        {"timer_starts_thread", timer_starts_thread},
        {"faults_in_threads", faults_in_threads},
        {"jumps_from_handlers", jumps_from_handlers},
        {"faults_in_loops", faults_in_loops},
        {"alternate_stacks", alternate_stacks},
        {"interrupted_call", interrupted_call},
        {"restarted_call", restarted_call},
        {"interrupted_semaphore", interrupted_semaphore},
        {"masks", masks},
    };
    sem_init(&ready, 0, 0);
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
